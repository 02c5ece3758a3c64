#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// How a figure of maps of azimuth and radius looks.
struct PolarFigureOptions {
  std::string title;                ///< of the page; empty: none
  std::string unit;                 ///< of the values, beside the colour bar
  double inner = 0, outer = 1;      ///< radii at the lower and upper edge, arcsec
  double first = 0, last = 360;     ///< azimuths at the left and right edge, degrees
  std::vector<double> frequencies;  ///< Hz, one per channel: named above each channel of a cube
  std::int64_t nchan = 0;           ///< channels of the cube of which shown_polar_channels() alone are given; 0: all are
};

/// The channels of a cube that polar_page() shows.
std::vector<std::int64_t> shown_polar_channels(std::int64_t nchan);

/// The page of a map, or of the channels of a cube (evenly spaced ones of more than six, which the title says): azimuth from left
/// to right, radius upwards, one colour scale for all.
/// @param map  (nchan, nr, nphi), any floating dtype, device
/// @throws ShapeError for another shape, or number of channels
Page polar_page(const Tensor& map, const PolarFigureOptions& options);

/// What is drawn of a match in polar coordinates.
struct MatchFigure {
  std::string title;                ///< above the figure
  std::string template_name;        ///< of the best template
  bool mirrored = false;            ///< whether it lies there mirrored
  std::string unit;                 ///< of the image
  Tensor image, model;              ///< (nr, nphi), the image and the template as it lies in it
  double inner = 0, outer = 1;      ///< radii at the lower and upper edge, arcsec
  Tensor scores;                    ///< (mirrors, nphi), of all angles of this template
  double first_angle = 0;           ///< of the first score, degrees
  double first_mirrored_angle = 0;  ///< of the first score of the mirrored template
};

/// Four panels: the image, the template in it, the residual, and the score against the angle.
/// @throws ShapeError for maps of different shapes
Page match_page(const MatchFigure& match);

}  // namespace mpol::plot
