#include <mpol_cpp/plot/canvas.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/stroke_font.h>

namespace mpol::plot {
namespace {

/// Distance of a point from the segment between a and b.
double distance_to_segment(CanvasPoint p, CanvasPoint a, CanvasPoint b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const double t = length2 > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

/// Pixels [begin, end) of an axis of `size` pixels whose centres lie between two coordinates, after clipping.
struct PixelRange {
  std::int64_t begin, end;
};

PixelRange pixels_between(double lower, double upper, std::int64_t size) {
  const auto limit = static_cast<double>(size);
  return {static_cast<std::int64_t>(std::floor(std::clamp(lower, 0.0, limit))),
          static_cast<std::int64_t>(std::ceil(std::clamp(upper, 0.0, limit)))};
}

bool inside(const Box& clip, double x, double y) {
  if (clip.width() <= 0 || clip.height() <= 0) return true;
  return x >= clip.left && x <= clip.right && y >= clip.top && y <= clip.bottom;
}

}  // namespace

Canvas::Canvas(std::int64_t width, std::int64_t height) : width_(width), height_(height) {
  if (width < 1 || height < 1 || width > 32768 || height > 32768)
    throw ValueError(fmt::format("picture of {} x {} pixels: each side takes 1 to 32768", width, height));
  pixels_.assign(static_cast<std::size_t>(3 * width * height), 255);
}

void Canvas::set(std::int64_t column, std::int64_t row, Rgb colour) {
  if (column < 0 || row < 0 || column >= width_ || row >= height_) return;
  auto* pixel = pixels_.data() + 3 * (row * width_ + column);
  pixel[0] = colour.red;
  pixel[1] = colour.green;
  pixel[2] = colour.blue;
}

void Canvas::blend(std::int64_t column, std::int64_t row, Rgb colour, double coverage) {
  if (column < 0 || row < 0 || column >= width_ || row >= height_ || coverage <= 0) return;
  const double share = std::min(coverage, 1.0);
  auto* pixel = pixels_.data() + 3 * (row * width_ + column);
  const auto mix = [share](std::uint8_t below, std::uint8_t above) {
    return static_cast<std::uint8_t>(std::lround((1 - share) * below + share * above));
  };
  pixel[0] = mix(pixel[0], colour.red);
  pixel[1] = mix(pixel[1], colour.green);
  pixel[2] = mix(pixel[2], colour.blue);
}

void Canvas::line(const std::vector<CanvasPoint>& points, double line_width, Rgb colour, const Box& clip) {
  const double reach = line_width / 2 + 0.5;
  for (std::size_t i = 0; i + 1 < std::max<std::size_t>(points.size(), 2) && !points.empty(); ++i) {
    const auto a = points[i], b = points[std::min(i + 1, points.size() - 1)];
    const auto columns = pixels_between(std::min(a.x, b.x) - reach, std::max(a.x, b.x) + reach, width_);
    const auto rows = pixels_between(std::min(a.y, b.y) - reach, std::max(a.y, b.y) + reach, height_);
    for (auto row = rows.begin; row < rows.end; ++row) {
      for (auto column = columns.begin; column < columns.end; ++column) {
        const double x = static_cast<double>(column) + 0.5, y = static_cast<double>(row) + 0.5;
        if (inside(clip, x, y)) blend(column, row, colour, reach - distance_to_segment({x, y}, a, b));
      }
    }
  }
}

void Canvas::frame(const Box& box, double line_width, Rgb colour) {
  line({{box.left, box.top}, {box.right, box.top}, {box.right, box.bottom}, {box.left, box.bottom}, {box.left, box.top}},
       line_width, colour);
}

void Canvas::dot(CanvasPoint centre, double radius, Rgb colour, double opacity, const Box& clip) {
  if (!inside(clip, centre.x, centre.y)) return;
  const auto columns = pixels_between(centre.x - radius - 1, centre.x + radius + 1, width_);
  const auto rows = pixels_between(centre.y - radius - 1, centre.y + radius + 1, height_);
  for (auto row = rows.begin; row < rows.end; ++row) {
    for (auto column = columns.begin; column < columns.end; ++column) {
      const double distance = std::hypot(static_cast<double>(column) + 0.5 - centre.x, static_cast<double>(row) + 0.5 - centre.y);
      blend(column, row, colour, opacity * std::clamp(radius + 0.5 - distance, 0.0, 1.0));
    }
  }
}

void Canvas::fill(const std::vector<CanvasPoint>& polygon, Rgb colour, double opacity) {
  if (polygon.size() < 3) return;
  constexpr int samples = 4;  // scan lines in a row of pixels
  const auto [lowest, highest] = std::minmax_element(polygon.begin(), polygon.end(), [](auto a, auto b) { return a.y < b.y; });
  const auto rows = pixels_between(lowest->y, highest->y, height_);
  for (auto row = rows.begin; row < rows.end; ++row) {
    std::vector<double> coverage(static_cast<std::size_t>(width_), 0.0);
    for (int k = 0; k < samples; ++k) {
      const double y = static_cast<double>(row) + (k + 0.5) / samples;
      std::vector<double> crossings;
      for (std::size_t i = 0; i < polygon.size(); ++i) {
        const auto a = polygon[i], b = polygon[(i + 1) % polygon.size()];
        if ((a.y <= y) != (b.y <= y)) crossings.push_back(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x));
      }
      std::sort(crossings.begin(), crossings.end());
      for (std::size_t i = 0; i + 1 < crossings.size(); i += 2) {
        const auto columns = pixels_between(crossings[i], crossings[i + 1], width_);
        for (auto column = columns.begin; column < columns.end; ++column) {
          const auto left = static_cast<double>(column);
          const double covered = std::min(left + 1, crossings[i + 1]) - std::max(left, crossings[i]);
          coverage[static_cast<std::size_t>(column)] += std::max(0.0, covered) / samples;
        }
      }
    }
    for (std::int64_t column = 0; column < width_; ++column)
      blend(column, row, colour, opacity * coverage[static_cast<std::size_t>(column)]);
  }
}

void Canvas::text(CanvasPoint anchor, std::string_view text, const TextStyle& style) {
  const auto layout = lay_out(text);
  const double before = style.anchor == Anchor::start ? 0 : style.anchor == Anchor::middle ? 0.5 : 1;
  for (const auto& stroke : layout.strokes) {
    std::vector<CanvasPoint> points;
    for (const auto& point : stroke) {
      const double along = style.size * (point.x - before * layout.width), above = style.size * point.y;
      points.push_back(style.direction == Direction::right ? CanvasPoint{anchor.x + along, anchor.y - above}
                                                           : CanvasPoint{anchor.x - above, anchor.y - along});
    }
    line(points, std::max(1.0, style.size / 8), style.colour);
  }
}

double text_width(std::string_view text, double size) { return lay_out(text).width * size; }

}  // namespace mpol::plot
