#include <mpol_cpp/plot/axes_painter.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/plot/axis_ticks.h>

namespace mpol::plot {
namespace {

constexpr double tick_length = 6;

std::vector<Tick> ticks_of(const AxisMap& axis, double pixels_per_tick) {
  const auto wanted = static_cast<std::int64_t>(std::abs(axis.to_pixel - axis.from_pixel) / pixels_per_tick);
  const double lower = std::min(axis.from_value, axis.to_value), upper = std::max(axis.from_value, axis.to_value);
  return axis.scale == AxisScale::logarithmic ? logarithmic_ticks(lower, upper, wanted) : linear_ticks(lower, upper, wanted);
}

}  // namespace

double AxisMap::operator()(double value) const {
  const auto position = [this](double x) { return scale == AxisScale::logarithmic ? std::log10(x) : x; };
  const double share = (position(value) - position(from_value)) / (position(to_value) - position(from_value));
  return from_pixel + share * (to_pixel - from_pixel);
}

void paint_axes(Canvas& canvas, const Axes& axes) {
  const auto& box = axes.box;
  canvas.frame(box, 1.4, ink);
  for (const auto& tick : ticks_of(axes.x, 75)) {
    const double x = axes.x(tick.value);
    canvas.line({{x, box.bottom}, {x, box.bottom + tick_length}}, 1.4, ink);
    canvas.text({x, box.bottom + tick_length + 1.6 * letter_size}, tick.label, {letter_size, ink});
  }
  double widest = 0;
  for (const auto& tick : ticks_of(axes.y, 60)) {
    const double y = axes.y(tick.value);
    canvas.line({{box.left, y}, {box.left - tick_length, y}}, 1.4, ink);
    canvas.text({box.left - tick_length - 5, y + letter_size / 2}, tick.label, {letter_size, ink, Anchor::end});
    widest = std::max(widest, text_width(tick.label, letter_size));
  }
  const double middle_x = (box.left + box.right) / 2, middle_y = (box.top + box.bottom) / 2;
  canvas.text({middle_x, box.bottom + tick_length + 4 * letter_size}, axes.x_label, {letter_size, ink});
  canvas.text({box.left - tick_length - widest - 16, middle_y}, axes.y_label, {letter_size, ink, Anchor::middle, Direction::up});
  canvas.text({middle_x, box.top - 0.9 * title_size}, axes.title, {title_size, ink});
}

}  // namespace mpol::plot
