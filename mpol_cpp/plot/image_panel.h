#pragma once

#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::plot {

/// An image of the grid's size as (nchan, npix, npix) float64 on the CPU. @throws ShapeError for anything else
Tensor as_cube(const Tensor& sky_image, const GridCoords& coords);

/// The colours that suit values: diverging where negative ones reach half as far as positive ones, as in Stokes Q, residuals and
/// differences.
ColorScale suitable_scale(const Tensor& values);

/// A panel whose colour scale holds all finite values: from zero, or the least value if that is lower, to the largest for
/// the sequential scale, symmetric about zero for the diverging one.
ImagePanel panel_style(const Tensor& values, ColorScale scale);
/// The same with suitable_scale().
ImagePanel panel_style(const Tensor& values);

/// Restricts a panel to the pixels whose middles lie within so many arcsec of the phase centre along both axes.
/// @throws ValueError when that leaves none
void crop(ImagePanel& panel, double half_width);

/// Moves the axes of a panel, or of all images of a page, which count from the middle of their grid: that lies at `center` from
/// what they count from then.
void shift(ImagePanel& panel, const SkyOffset& center);
void shift(Page& page, const SkyOffset& center);  ///< maps of other planes, without labels in arcsec, stay

/// Values of a tensor as a vector of double, in its order.
std::vector<double> to_vector(const Tensor& values);

/// A bar of a round length, about a fifth of the image's width, labelled in arcsec.
ScaleBar default_scale_bar(const GridCoords& coords);
/// The same for an image of that width, arcsec.
ScaleBar scale_bar_for(double width);

}  // namespace mpol::plot
