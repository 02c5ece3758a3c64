#pragma once

#include <array>
#include <vector>

#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/color_map.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

// Where things of a panel lie in its own coordinates, for every renderer alike.

struct AxisRange {
  double lower = 0, upper = 1;
};

/// Range of an axis that holds the values of one coordinate of the curves, with a small margin; 0 to 1 (logarithmic: 1 to
/// 10) when there are none.
AxisRange axis_range(const std::vector<Curve>& curves, std::vector<double> Curve::*coordinate, AxisScale scale);

/// Both ranges of a panel, equal and symmetric when it asks for that.
struct PanelRanges {
  AxisRange x, y;
};
PanelRanges ranges_of(const CurvePanel& panel);

/// The corner of a panel that holds fewest points and bars: there its legend goes.
struct Corner {
  bool right = true, top = true;
};
Corner legend_corner(const CurvePanel& panel);

/// Ends of the bar of one point; both are its y without bars.
std::array<double, 2> bar_of(const Curve& curve, std::size_t point);

/// The colour of a curve: its own, or that of its place among the curves that are no guides.
Rgb color_of_curve(const CurvePanel& panel, std::size_t number);

/// Ticks of a panel's colour bar, about one per `spacing` of its length.
std::vector<Tick> color_bar_ticks(const ImagePanel& panel, double spacing);

/// Whether a value has a place on an axis.
bool can_be_shown(double value, AxisScale scale);

/// A beam in the lower left corner of a panel: points (offset East, offset North) around its outline, arcsec.
std::vector<std::array<double, 2>> beam_outline(const ImagePanel& panel);

/// A scale bar in the lower right corner of a panel, arcsec.
struct BarPlace {
  double east, west;   ///< its ends
  double north;        ///< its height
  double label_north;  ///< height of its label's middle
};
BarPlace bar_place(const ImagePanel& panel);

/// The panel's values as contiguous (ny, nx) float32 on the CPU. @throws ValueError unless there are pixels
Tensor pixels_of(const ImagePanel& panel);

}  // namespace mpol::plot
