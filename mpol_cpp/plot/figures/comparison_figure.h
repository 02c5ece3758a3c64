#pragma once

#include <optional>
#include <string>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// How a comparison looks.
struct ComparisonFigureOptions {
  std::string name_a = "A", name_b = "B";  ///< what the images are called above their panels
  std::string unit = "Jy/arcsec²";         ///< of both images and of their difference
  std::optional<double> lower, upper;      ///< ends of the colour scale of both images; unset: from their values
  ColorNorm norm;                          ///< of both images
  std::optional<double> half_width;        ///< arcsec shown to each side of the phase centre; unset: all
  std::optional<std::int64_t> channel;     ///< unset: the one in which they differ most
};

/// The page of two images on one grid with one colour scale, and their difference B - A.
/// @param a, b  (npix, npix) or (nchan, npix, npix), sky orientation
/// @throws ShapeError when an image does not fit the grid or they have different shapes; ValueError for a channel that is
///         not there
Page comparison_page(const Tensor& a, const Tensor& b, const GridCoords& coords, const ComparisonFigureOptions& options = {});

}  // namespace mpol::plot
