#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/images/beam.h>

namespace mpol::plot {

using torch::Tensor;

/// How values become colours.
enum class ColorScale {
  sequential,  ///< dark to bright
  diverging,   ///< blue, white, red about zero
};

/// How the place of a value on the colour scale follows from its share of the range.
enum class Stretch {
  linear,  ///< the share itself
  power,   ///< share^gamma: gamma < 1 lifts what is faint
  asinh,   ///< asinh(share / softening) / asinh(1 / softening): linear below the softening, logarithmic above
};

/// Maps values onto the colour scale. On a diverging scale both signs are stretched alike.
struct ColorNorm {
  Stretch stretch = Stretch::linear;  ///< of the values between the ends of the scale
  double gamma = 0.5;                 ///< of the power, > 0
  double softening = 0.02;            ///< of asinh, part of the range, > 0
};

/// A bar of a given length, drawn in the lower right corner.
struct ScaleBar {
  double length = 0;  ///< arcsec
  std::string label;  ///< for example `0.5″` or `100 au`
};

/// Lines along which a map has certain values.
struct Contours {
  Tensor values;               ///< (ny, nx) in sky orientation, of the extent of the panel's image
  std::vector<double> levels;  ///< values of the lines, in the unit of the map
};

/// An image of the sky with axes, colour bar, and optional beam and scale bar; or a map of another plane.
struct ImagePanel {
  std::string title;               ///< above the panel; empty: none
  Tensor values;                   ///< (ny, nx) in sky orientation: row 0 South, column 0 East; any floating dtype
  std::array<double, 4> extent{};  ///< outer edges East (left), West (right), South, North, arcsec; of a map left, right, …
  ColorNorm norm;                  ///< how values are spread over the scale
  double lower = 0, upper = 1;     ///< values at the ends of the colour scale
  ColorScale scale = ColorScale::sequential;  ///< the colours
  std::string unit;                           ///< beside the colour bar
  bool color_bar = true;                      ///< false: a neighbour's bar is this panel's too
  std::optional<ScaleBar> scale_bar;          ///< in the lower right corner; unset: none
  std::optional<Beam> beam;                   ///< restoring or dirty beam, drawn as an ellipse in the lower left corner
  std::optional<Contours> contours;           ///< drawn over the image; unset: none
  std::string x_label = "offset East (″)", y_label = "offset North (″)";  ///< below and beside the axes
  std::optional<double> height_of_width = std::nullopt;                   ///< of the drawn area; unset: both axes on one scale
};

/// How the points of a curve are drawn.
enum class CurveStyle {
  line,    ///< joined by a line
  dashes,  ///< joined by a dashed line
  steps,   ///< a histogram's outline: y is constant around each x, half way to its neighbours
  points,  ///< a mark for each
  band,    ///< the area between y - error and y + error, pale
  guide,   ///< thin and grey, for edges and zero lines; takes none of the figure's colours
};

/// One set of points of a curve panel. Points that are not finite, or not positive on a logarithmic axis, are left out.
struct Curve {
  std::string label;                                ///< empty: not in the legend
  CurveStyle style = CurveStyle::line;              ///< how they are drawn
  std::vector<double> x, y;                         ///< the points, of one length
  std::vector<double> error = {};                   ///< half lengths of bars along y, one per point; empty: no bars
  std::optional<std::size_t> color = std::nullopt;  ///< which of the figure's colours; unset: the place in the panel
};

/// How values are spread along an axis.
enum class AxisScale {
  linear,      ///< evenly
  logarithmic  ///< evenly in their logarithm
};

/// x-y plot.
struct CurvePanel {
  std::string title, x_label, y_label;    ///< above the panel, below and beside the axes
  std::vector<Curve> curves;              ///< in the order in which they are drawn
  AxisScale x_scale = AxisScale::linear;  ///< of the axis from left to right
  AxisScale y_scale = AxisScale::linear;  ///< of the axis upwards
  bool equal_axes = false;                ///< the same range, symmetric about zero, in x and y (uv coverage)
  /// Lower and upper end of an axis; unset: what holds all points and bars.
  std::optional<std::array<double, 2>> x_range = std::nullopt, y_range = std::nullopt;
};

using Panel = std::variant<ImagePanel, CurvePanel>;  ///< what a page consists of

/// A page of panels, filled row by row.
struct Page {
  std::string title;                                   ///< above all panels; empty: none
  std::int64_t columns = 1;                            ///< panels in a row, >= 1
  std::vector<Panel> panels;                           ///< from left to right, row by row
  std::int64_t panel_width = 700, panel_height = 600;  ///< pixels
};

}  // namespace mpol::plot
