#include <mpol_cpp/plot/panel_geometry.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::plot {

bool can_be_shown(double value, AxisScale scale) { return std::isfinite(value) && (scale == AxisScale::linear || value > 0); }

AxisRange axis_range(const std::vector<Curve>& curves, std::vector<double> Curve::*coordinate, AxisScale scale) {
  double lower = std::numeric_limits<double>::infinity(), upper = -lower;
  for (const auto& curve : curves) {
    for (const double value : curve.*coordinate) {
      if (!can_be_shown(value, scale)) continue;
      lower = std::min(lower, value);
      upper = std::max(upper, value);
    }
  }
  if (scale == AxisScale::logarithmic) {
    if (!(upper > 0)) return {1, 10};
    const double margin = std::max(std::pow(upper / lower, 0.05), 1.05);
    return {lower / margin, upper * margin};
  }
  if (!(upper >= lower)) return {0, 1};
  const double margin = upper > lower ? 0.04 * (upper - lower) : std::max(0.5 * std::abs(upper), 0.5);
  return {lower - margin, upper + margin};
}

PanelRanges ranges_of(const CurvePanel& panel) {
  PanelRanges ranges{axis_range(panel.curves, &Curve::x, panel.x_scale), axis_range(panel.curves, &Curve::y, panel.y_scale)};
  if (panel.equal_axes) {
    const double reach =
        std::max({std::abs(ranges.x.lower), std::abs(ranges.x.upper), std::abs(ranges.y.lower), std::abs(ranges.y.upper)});
    ranges.x = ranges.y = {-reach, reach};
  }
  return ranges;
}

std::vector<std::array<double, 2>> beam_outline(const ImagePanel& panel) {
  constexpr int points = 72;
  const auto& beam = panel.beam.value();
  const double width = panel.extent[0] - panel.extent[1], height = panel.extent[3] - panel.extent[2];
  const double room = beam.major / 2 + 0.04 * std::min(width, height);
  const double east = panel.extent[0] - room, north = panel.extent[2] + room;
  std::vector<std::array<double, 2>> outline;
  for (int i = 0; i < points; ++i) {
    const double angle = 2 * units::pi * i / points;
    const double along = beam.major / 2 * std::cos(angle), across = beam.minor / 2 * std::sin(angle);
    const double sine = std::sin(beam.position_angle), cosine = std::cos(beam.position_angle);
    outline.push_back({east + along * sine + across * cosine, north + along * cosine - across * sine});
  }
  return outline;
}

BarPlace bar_place(const ImagePanel& panel) {
  const double width = panel.extent[0] - panel.extent[1], height = panel.extent[3] - panel.extent[2];
  const double west = panel.extent[1] + 0.06 * width, north = panel.extent[2] + 0.06 * height;
  return {west + panel.scale_bar.value().length, west, north, north + 0.045 * height};
}

Tensor pixels_of(const ImagePanel& panel) {
  if (!panel.values.defined() || panel.values.dim() != 2 || panel.values.numel() == 0)
    throw ValueError(fmt::format("image panel \"{}\" has no pixels: give it an image of two dimensions", panel.title));
  return panel.values.detach().to(torch::kCPU, torch::kFloat32).contiguous();
}

}  // namespace mpol::plot
