#pragma once

#include <string>

#include <mpol_cpp/plot/canvas.h>
#include <mpol_cpp/plot/figure.h>
#include <mpol_cpp/plot/panel_geometry.h>

namespace mpol::plot {

/// Sizes of letters and colours that all panels share.
inline constexpr double letter_size = 11;
inline constexpr double title_size = 13;
inline constexpr Rgb ink{30, 30, 30};

/// Maps the coordinates of an axis, which may run backwards, onto pixels.
struct AxisMap {
  double from_value, to_value;
  double from_pixel, to_pixel;
  AxisScale scale = AxisScale::linear;

  double operator()(double value) const;
};

/// The two axes of a panel around a box.
struct Axes {
  Box box;
  AxisMap x, y;
  std::string title, x_label, y_label;
};

/// Frame, ticks, tick labels, axis labels and title.
void paint_axes(Canvas& canvas, const Axes& axes);

}  // namespace mpol::plot
