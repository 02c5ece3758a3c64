#include <mpol_cpp/plot/panel_painter.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <mpol_cpp/plot/axes_painter.h>
#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/panel_geometry.h>

namespace mpol::plot {
namespace {

constexpr Rgb white{255, 255, 255};
constexpr std::array<Rgb, 4> curve_colours = {{{35, 85, 160}, {210, 90, 30}, {40, 130, 70}, {130, 60, 140}}};

/// The largest box with the shape of the image in the middle of the room for it.
Box fitted(const Box& room, double width, double height) {
  const double scale = std::min(room.width() / width, room.height() / height);
  const double half_width = scale * width / 2, half_height = scale * height / 2;
  const double x = (room.left + room.right) / 2, y = (room.top + room.bottom) / 2;
  return {std::round(x - half_width), std::round(y - half_height), std::round(x + half_width), std::round(y + half_height)};
}

/// Averages of the image's pixels that each pixel of the box covers: at least the one under its middle.
void paint_image(Canvas& canvas, const Box& box, const ImagePanel& panel) {
  const auto image = pixels_of(panel);
  const auto rows = image.size(0), columns = image.size(1);
  const auto* values = image.const_data_ptr<float>();
  const auto table = colour_table(panel.scale);
  const auto covered = [](std::int64_t pixel, std::int64_t pixels, std::int64_t cells) {
    const auto begin = std::min(pixel * cells / pixels, cells - 1);
    return std::array<std::int64_t, 2>{begin, std::max(begin + 1, (pixel + 1) * cells / pixels)};
  };
  const auto width = static_cast<std::int64_t>(box.width()), height = static_cast<std::int64_t>(box.height());
  for (std::int64_t y = 0; y < height; ++y) {
    const auto [row_begin, row_end] = covered(height - 1 - y, height, rows);  // row 0 is South
    for (std::int64_t x = 0; x < width; ++x) {
      const auto [column_begin, column_end] = covered(x, width, columns);
      double sum = 0;
      for (auto row = row_begin; row < row_end; ++row)
        for (auto column = column_begin; column < column_end; ++column)
          sum += static_cast<double>(values[row * columns + column]);
      const auto count = static_cast<double>((row_end - row_begin) * (column_end - column_begin));
      canvas.set(static_cast<std::int64_t>(box.left) + x, static_cast<std::int64_t>(box.top) + y,
                 colour_of(sum / count, panel.lower, panel.upper, table));
    }
  }
}

void paint_colour_bar(Canvas& canvas, const Box& box, const ImagePanel& panel) {
  const auto table = colour_table(panel.scale);
  const auto top = static_cast<std::int64_t>(box.top), bottom = static_cast<std::int64_t>(box.bottom);
  for (auto row = top; row < bottom; ++row) {
    const double share = (static_cast<double>(bottom - row) - 0.5) / static_cast<double>(bottom - top);
    const auto colour = colour_of(share, 0, 1, table);
    for (auto column = static_cast<std::int64_t>(box.left); column < static_cast<std::int64_t>(box.right); ++column)
      canvas.set(column, row, colour);
  }
  canvas.frame(box, 1.4, ink);
  const AxisMap axis{panel.lower, panel.upper, box.bottom, box.top};
  double widest = 0;
  for (const auto& tick : linear_ticks(panel.lower, panel.upper, static_cast<std::int64_t>(box.height() / 60))) {
    const double y = axis(tick.value);
    canvas.line({{box.right, y}, {box.right + 5, y}}, 1.4, ink);
    canvas.text({box.right + 9, y + letter_size / 2}, tick.label, {letter_size, ink, Anchor::start});
    widest = std::max(widest, text_width(tick.label, letter_size));
  }
  canvas.text({box.right + 9 + widest + 1.9 * letter_size, (box.top + box.bottom) / 2}, panel.unit,
              {letter_size, ink, Anchor::middle, Direction::up});
}

void paint_marks(Canvas& canvas, const Axes& axes, const ImagePanel& panel) {
  const auto mark = panel.scale == ColourScale::sequential ? white : ink;
  if (panel.beam) {
    std::vector<CanvasPoint> outline;
    for (const auto& [east, north] : beam_outline(panel)) outline.push_back({axes.x(east), axes.y(north)});
    canvas.fill(outline, mark, 0.5);
    outline.push_back(outline.front());
    canvas.line(outline, 1.5, mark, axes.box);
  }
  if (panel.scale_bar) {
    const auto bar = bar_place(panel);
    canvas.line({{axes.x(bar.east), axes.y(bar.north)}, {axes.x(bar.west), axes.y(bar.north)}}, 3, mark, axes.box);
    canvas.text({axes.x((bar.east + bar.west) / 2), axes.y(bar.label_north) + letter_size / 2}, panel.scale_bar->label,
                {letter_size, mark});
  }
}

void paint_legend(Canvas& canvas, const Box& box, const std::vector<Curve>& curves) {
  double widest = 0;
  for (const auto& curve : curves) widest = std::max(widest, text_width(curve.label, letter_size));
  double y = box.top + 18;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].label.empty()) continue;
    const auto colour = curve_colours[i % curve_colours.size()];
    const double x = box.right - widest - 52;
    if (curves[i].style == CurveStyle::line) canvas.line({{x, y}, {x + 28, y}}, 2, colour);
    else canvas.dot({x + 14, y}, 3, colour);
    canvas.text({x + 38, y + letter_size / 2}, curves[i].label, {letter_size, ink, Anchor::start});
    y += 2 * letter_size;
  }
}

void paint_curve(Canvas& canvas, const Axes& axes, const Curve& curve, Rgb colour) {
  const bool crowded = curve.x.size() > 2000;
  std::vector<CanvasPoint> run;
  for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    if (!can_be_shown(curve.x[i], axes.x.scale) || !can_be_shown(curve.y[i], axes.y.scale)) {
      canvas.line(run, 2, colour, axes.box);
      run.clear();
      continue;
    }
    const CanvasPoint point{axes.x(curve.x[i]), axes.y(curve.y[i])};
    if (curve.style == CurveStyle::points) canvas.dot(point, crowded ? 0.8 : 2.5, colour, crowded ? 0.6 : 1, axes.box);
    else run.push_back(point);
  }
  if (!run.empty()) canvas.line(run, 2, colour, axes.box);
}

}  // namespace

void paint(Canvas& canvas, const Box& area, const ImagePanel& panel) {
  const Box room{area.left + 80, area.top + 40, area.right - 135, area.bottom - 65};
  const auto& [east, west, south, north] = panel.extent;
  const auto box = fitted(room, east - west, north - south);
  const Axes axes{box,
                  {east, west, box.left, box.right},
                  {south, north, box.bottom, box.top},
                  panel.title,
                  "offset East (″)",
                  "offset North (″)"};
  paint_image(canvas, box, panel);
  paint_axes(canvas, axes);
  paint_marks(canvas, axes, panel);
  paint_colour_bar(canvas, {box.right + 14, box.top, box.right + 32, box.bottom}, panel);
}

void paint(Canvas& canvas, const Box& area, const CurvePanel& panel) {
  const auto ranges = ranges_of(panel);
  Box box{area.left + 95, area.top + 40, area.right - 40, area.bottom - 65};
  if (panel.equal_axes) box = fitted(box, 1, 1);
  const Axes axes{box,
                  {ranges.x.lower, ranges.x.upper, box.left, box.right, panel.x_scale},
                  {ranges.y.lower, ranges.y.upper, box.bottom, box.top, panel.y_scale},
                  panel.title,
                  panel.x_label,
                  panel.y_label};
  for (std::size_t i = 0; i < panel.curves.size(); ++i)
    paint_curve(canvas, axes, panel.curves[i], curve_colours[i % curve_colours.size()]);
  paint_axes(canvas, axes);
  paint_legend(canvas, box, panel.curves);
}

}  // namespace mpol::plot
