#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <mpol_cpp/plot/color_map.h>

namespace mpol::plot {

/// A point on a canvas in pixels from its upper left corner, x to the right, y down.
struct CanvasPoint {
  double x = 0, y = 0;
};

/// A rectangle of a canvas in pixels.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

/// Where a text's anchor lies along it.
enum class Anchor { start, middle, end };
/// Direction of a text: to the right, or upwards.
enum class Direction { right, up };

struct TextStyle {
  double size = 13;  ///< height of a capital letter, pixels
  Rgb colour;
  Anchor anchor = Anchor::middle;
  Direction direction = Direction::right;
};

/// An RGB picture with smooth lines and text.
class Canvas {
 public:
  /// White. @param width, height  pixels, > 0
  Canvas(std::int64_t width, std::int64_t height);

  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  /// Rows from the top, three bytes a pixel.
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }

  /// Sets one pixel; outside the canvas nothing happens.
  void set(std::int64_t column, std::int64_t row, Rgb colour);
  /// Lays a colour over a pixel; coverage 0 leaves it, 1 replaces it.
  void blend(std::int64_t column, std::int64_t row, Rgb colour, double coverage);

  /// Line of a given width through the points, with round ends; only inside `clip` when that has an area.
  void line(const std::vector<CanvasPoint>& points, double line_width, Rgb colour, const Box& clip = {});
  void frame(const Box& box, double line_width, Rgb colour);
  void dot(CanvasPoint centre, double radius, Rgb colour, double opacity = 1, const Box& clip = {});
  /// Fills a polygon (even-odd rule).
  void fill(const std::vector<CanvasPoint>& polygon, Rgb colour, double opacity = 1);
  /// Text whose baseline starts, is centred, or ends at the anchor.
  void text(CanvasPoint anchor, std::string_view text, const TextStyle& style);

 private:
  std::int64_t width_, height_;
  std::vector<std::uint8_t> pixels_;
};

/// Width in pixels of a text of a given size.
double text_width(std::string_view text, double size);

}  // namespace mpol::plot
