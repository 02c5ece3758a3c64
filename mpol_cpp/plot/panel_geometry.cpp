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
  const auto include = [&](double value) {
    if (!can_be_shown(value, scale)) return;
    lower = std::min(lower, value);
    upper = std::max(upper, value);
  };
  for (const auto& curve : curves) {
    for (const double value : curve.*coordinate) include(value);
    if (coordinate != &Curve::y || curve.error.empty()) continue;
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      // A bar that reaches far below its point must not stretch a logarithmic axis over empty decades.
      const auto [low, high] = bar_of(curve, i);
      include(scale == AxisScale::logarithmic ? std::max(low, curve.y[i] / 3) : low);
      include(high);
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
  if (panel.x_range) ranges.x = {(*panel.x_range)[0], (*panel.x_range)[1]};
  if (panel.y_range) ranges.y = {(*panel.y_range)[0], (*panel.y_range)[1]};
  return ranges;
}

std::array<double, 2> bar_of(const Curve& curve, std::size_t point) {
  const double y = curve.y[point], half = point < curve.error.size() ? curve.error[point] : 0;
  return {y - half, y + half};
}

Rgb color_of_curve(const CurvePanel& panel, std::size_t number) {
  const auto& curve = panel.curves[number];
  if (curve.style == CurveStyle::guide) return {150, 150, 150};
  const auto first = panel.curves.begin();
  const auto guides = std::count_if(first, first + static_cast<std::ptrdiff_t>(number),
                                    [](const Curve& other) { return other.style == CurveStyle::guide; });
  return curve_color(curve.color.value_or(number - static_cast<std::size_t>(guides)));
}

Corner legend_corner(const CurvePanel& panel) {
  const auto ranges = ranges_of(panel);
  const auto share = [](double value, const AxisRange& range, AxisScale scale) {
    if (scale == AxisScale::linear) return (value - range.lower) / (range.upper - range.lower);
    return std::log(value / range.lower) / std::log(range.upper / range.lower);
  };
  std::array<double, 4> crowd{};  // top right, top left, bottom right, bottom left
  for (const auto& curve : panel.curves) {
    if (curve.style == CurveStyle::guide) continue;
    const auto count = std::min(curve.x.size(), curve.y.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (!can_be_shown(curve.x[i], panel.x_scale)) continue;
      const double x = share(curve.x[i], ranges.x, panel.x_scale);
      if (x < 0 || x > 1) continue;
      const bool in_left = x<0.6, in_right = x> 0.4;  // a legend may be that wide
      for (const double end : bar_of(curve, i)) {
        if (!can_be_shown(end, panel.y_scale)) continue;
        const double y = share(end, ranges.y, panel.y_scale);
        if (y < 0 || y > 1) continue;
        const double part = 1 / static_cast<double>(count);  // each curve counts alike, however many points it has
        if (in_right && y > 0.7) crowd[0] += part;
        if (in_left && y > 0.7) crowd[1] += part;
        if (in_right && y < 0.3) crowd[2] += part;
        if (in_left && y < 0.3) crowd[3] += part;
      }
    }
  }
  const auto best = std::min_element(crowd.begin(), crowd.end()) - crowd.begin();
  return {best % 2 == 0, best < 2};
}

std::vector<Tick> color_bar_ticks(const ImagePanel& panel, double spacing) {
  const double upper = panel.upper > panel.lower ? panel.upper : panel.lower + 1;
  if (panel.norm.stretch == Stretch::linear) return linear_ticks(panel.lower, upper, static_cast<std::int64_t>(1 / spacing));
  const auto place = [&](double value) { return color_place(value, panel.lower, upper, panel.norm, panel.scale); };
  return stretched_ticks(panel.lower, upper, place, 0.6 * spacing);
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
