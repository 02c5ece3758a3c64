#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/figure.h>

namespace mpol::plot {

/// An image of the grid's size as (nchan, npix, npix) float64 on the CPU. @throws ShapeError for anything else
Tensor as_cube(const Tensor& sky_image, const GridCoords& coords);

/// A panel whose colour scale holds all finite values: from zero, or the least value if that is lower, to the largest for
/// the sequential scale, symmetric about zero for the diverging one.
ImagePanel panel_style(const Tensor& values, ColourScale scale);

/// A bar of a round length, about a fifth of the image's width, labelled in arcsec.
ScaleBar default_scale_bar(const GridCoords& coords);

}  // namespace mpol::plot
