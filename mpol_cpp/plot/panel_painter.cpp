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
                 colour_of(colour_place(sum / count, panel.lower, panel.upper, panel.norm, panel.scale), 0, 1, table));
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
  double widest = 0;
  for (const auto& tick : colour_bar_ticks(panel, 60 / box.height())) {
    const double share = colour_place(tick.value, panel.lower, panel.upper, panel.norm, panel.scale);
    const double y = box.bottom - share * box.height();
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

void paint_legend(Canvas& canvas, const Box& box, const CurvePanel& panel) {
  double widest = 0, rows = 0;
  for (const auto& curve : panel.curves) {
    widest = std::max(widest, text_width(curve.label, letter_size));
    rows += curve.label.empty() ? 0 : 1;
  }
  const auto corner = legend_corner(panel);
  const double x = corner.right ? box.right - widest - 52 : box.left + 14;
  double y = corner.top ? box.top + 18 : box.bottom - 18 - (rows - 1) * 2 * letter_size;
  if (rows == 0) return;
  const double below = y + (rows - 1) * 2 * letter_size + letter_size, above = y - letter_size, end = x + widest + 44;
  canvas.fill({{x - 6, above}, {end, above}, {end, below}, {x - 6, below}}, white, 1);
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const auto& curve = panel.curves[i];
    if (curve.label.empty()) continue;
    const auto colour = colour_of_curve(panel, i);
    if (curve.style == CurveStyle::points) canvas.dot({x + 14, y}, 3, colour);
    else canvas.line({{x, y}, {x + 28, y}}, 2, colour);
    canvas.text({x + 38, y + letter_size / 2}, curve.label, {letter_size, ink, Anchor::start});
    y += 2 * letter_size;
  }
}

void paint_points(Canvas& canvas, const Axes& axes, const Curve& curve, Rgb colour) {
  const bool crowded = curve.x.size() > 2000;
  for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    if (!can_be_shown(curve.x[i], axes.x.scale) || !can_be_shown(curve.y[i], axes.y.scale)) continue;
    const CanvasPoint point{axes.x(curve.x[i]), axes.y(curve.y[i])};
    canvas.dot(point, crowded ? 0.8 : 2.5, colour, crowded ? 0.6 : 1, axes.box);
    if (curve.error.empty()) continue;
    const auto [low, high] = bar_of(curve, i);
    const double bottom = can_be_shown(low, axes.y.scale) ? axes.y(low) : axes.box.bottom;
    if (std::isfinite(high)) canvas.line({{point.x, bottom}, {point.x, axes.y(high)}}, 1.3, colour, axes.box);
  }
}

/// Lines through all points that can be shown, broken where one cannot; dashes are drawn whole.
void paint_line(Canvas& canvas, const Axes& axes, const std::vector<double>& x, const std::vector<double>& y, Rgb colour,
                double width) {
  std::vector<CanvasPoint> run;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (can_be_shown(x[i], axes.x.scale) && can_be_shown(y[i], axes.y.scale)) {
      run.push_back({axes.x(x[i]), axes.y(y[i])});
      continue;
    }
    canvas.line(run, width, colour, axes.box);
    run.clear();
  }
  if (!run.empty()) canvas.line(run, width, colour, axes.box);
}

void paint_curve(Canvas& canvas, const Axes& axes, const Curve& curve, Rgb colour) {
  if (curve.style == CurveStyle::points) return paint_points(canvas, axes, curve, colour);
  if (curve.style == CurveStyle::steps) {
    const auto outline = step_outline(curve);
    return paint_line(canvas, axes, outline.x, outline.y, colour, 2);
  }
  paint_line(canvas, axes, curve.x, curve.y, colour, curve.style == CurveStyle::guide ? 0.7 : 2);
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
  if (panel.colour_bar) paint_colour_bar(canvas, {box.right + 14, box.top, box.right + 32, box.bottom}, panel);
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
  for (std::size_t i = 0; i < panel.curves.size(); ++i) paint_curve(canvas, axes, panel.curves[i], colour_of_curve(panel, i));
  paint_axes(canvas, axes);
  paint_legend(canvas, box, panel);
}

}  // namespace mpol::plot
