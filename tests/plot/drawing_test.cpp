#include "catch.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/canvas.h>
#include <mpol_cpp/plot/color_map.h>
#include <mpol_cpp/plot/panel_geometry.h>
#include <mpol_cpp/plot/png.h>
#include <mpol_cpp/plot/stroke_font.h>

#include "figure_folder.h"

using namespace mpol;
using namespace mpol::plot;
using namespace mpol::testing;

namespace {

/// Relative luminance of a colour, raised to the power that makes equal steps look equal.
double lightness(Rgb colour) {
  const auto linear = [](std::uint8_t byte) { return std::pow(byte / 255.0, 2.2); };
  return std::cbrt(0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue));
}

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> result;
  for (const auto& tick : ticks) result.push_back(tick.label);
  return result;
}

}  // namespace

TEST_CASE("colour scales grow evenly in lightness", "[plot][quick]") {
  const auto table = colour_table(ColourScale::sequential);
  REQUIRE(table.size() == 256);
  const double whole = lightness(table.back()) - lightness(table.front());
  for (std::size_t i = 32; i < 256; i += 16) {
    const double step = lightness(table[i]) - lightness(table[i - 16]);
    CHECK(step > 0.5 * whole / 15.9);
    CHECK(step < 1.6 * whole / 15.9);
  }
  const auto diverging = colour_table(ColourScale::diverging, 255);
  CHECK(lightness(diverging[127]) > 0.97);
  CHECK(diverging.front().blue > diverging.front().red);
  CHECK(diverging.back().red > diverging.back().blue);
  CHECK(lightness(diverging.front()) == Approx(lightness(diverging.back())).margin(0.06));
  CHECK_THROWS_AS(colour_table(ColourScale::sequential, 1), ValueError);
}

TEST_CASE("values find their colours", "[plot][quick]") {
  const auto table = colour_table(ColourScale::sequential);
  CHECK(colour_of(0, 0, 2, table) == table.front());
  CHECK(colour_of(2, 0, 2, table) == table.back());
  CHECK(colour_of(1e9, 0, 2, table) == table.back());
  CHECK(colour_of(-1, 0, 2, table) == table.front());
  CHECK(colour_of(NAN, 0, 2, table) == Rgb{128, 128, 128});
  CHECK(colour_of(1, 1, 1, table) == table.front());
}

TEST_CASE("ticks are round numbers in any direction", "[plot][quick]") {
  CHECK(labels(linear_ticks(-1, 1, 5)) == std::vector<std::string>{"-1.0", "-0.5", "0.0", "0.5", "1.0"});
  CHECK(labels(linear_ticks(1, -1, 5)) == labels(linear_ticks(-1, 1, 5)));
  CHECK(labels(linear_ticks(0, 5e-5, 5)).at(1) == "1·10⁻⁵");
  CHECK(labels(linear_ticks(0, 1200, 3)) == std::vector<std::string>{"0", "500", "1000"});
  CHECK(linear_ticks(1, 1, 5).empty());
  CHECK(linear_ticks(0, INFINITY, 5).empty());
  CHECK(labels(logarithmic_ticks(0.5, 2000, 5)) == std::vector<std::string>{"10⁰", "10¹", "10²", "10³"});
  CHECK(labels(logarithmic_ticks(1.5, 6, 5)) == std::vector<std::string>{"2", "5"});
  CHECK(logarithmic_ticks(0, 6, 5).empty());
  CHECK(round_length(0.99) == Approx(0.5));
  CHECK(round_length(1.0) == Approx(1.0));
  CHECK(round_length(0.27) == Approx(0.2));
  CHECK(power_of_ten(-12) == "10⁻¹²");
}

TEST_CASE("text has the width of its letters, and every letter of the alphabet is drawn", "[plot][quick]") {
  CHECK(lay_out("").width == 0);
  CHECK(lay_out("mm").width > lay_out("m").width * 1.9);
  CHECK(lay_out("x²").width < lay_out("x2").width);
  const auto unknown = lay_out("漢");
  CHECK(unknown.strokes.size() == 1);
  for (char letter = '!'; letter <= '~'; ++letter) {
    INFO(letter);
    const auto drawn = lay_out(std::string(1, letter));
    REQUIRE_FALSE(drawn.strokes.empty());
    for (const auto& stroke : drawn.strokes)
      for (const auto& point : stroke) CHECK((point.x >= 0 && point.x <= 1 && point.y >= -0.5 && point.y <= 1.3));
  }
  for (const std::string special : {"″", "′", "°", "×", "−", "·", "λ", "σ", "χ", "µ", "²", "⁻"})
    CHECK(lay_out(special).width < unknown.width * 1.05);
  CHECK_NOTHROW(lay_out("\xff\xc3"));  // no valid UTF-8
}

TEST_CASE("lines, dots, polygons and text stay on the canvas and where they belong", "[plot][quick]") {
  Canvas canvas(40, 30);
  canvas.line({{-100, 10.5}, {100, 10.5}}, 1, {0, 0, 0});
  canvas.fill({{5, 20}, {15, 20}, {15, 25}, {5, 25}}, {255, 0, 0});
  canvas.dot({30, 22}, 3, {0, 0, 255});
  canvas.text({20, 4}, "far too long for this canvas", {10, {0, 0, 0}});
  const auto pixel = [&](std::size_t column, std::size_t row) {
    const auto* p = canvas.pixels().data() + 3 * (row * 40 + column);
    return Rgb{p[0], p[1], p[2]};
  };
  CHECK(pixel(20, 10) == Rgb{0, 0, 0});
  CHECK(pixel(20, 13) == Rgb{255, 255, 255});
  CHECK(pixel(10, 22) == Rgb{255, 0, 0});
  CHECK(pixel(18, 22) == Rgb{255, 255, 255});
  CHECK(pixel(30, 22) == Rgb{0, 0, 255});
  CHECK_THROWS_AS(Canvas(0, 10), ValueError);
}

TEST_CASE("a beam's outline has its axes and its position angle, North through East", "[plot][quick]") {
  ImagePanel panel;
  panel.extent = {2, -2, -2, 2};
  panel.beam = Beam{0.4, 0.2, 30 * 3.14159265358979 / 180};
  const auto outline = beam_outline(panel);
  const auto &tip = outline.front(), &tail = outline[outline.size() / 2];
  CHECK(std::hypot(tip[0] - tail[0], tip[1] - tail[1]) == Approx(0.4));
  CHECK(tip[0] - tail[0] == Approx(0.4 * 0.5));                 // East
  CHECK(tip[1] - tail[1] == Approx(0.4 * std::sqrt(3.0) / 2));  // North
  for (const auto& [east, north] : outline) CHECK((east < 2 && north > -2 && east > 1 && north < -1));
}

TEST_CASE("axis ranges hold the values that can be shown", "[plot][quick]") {
  const std::vector<Curve> curves = {{"", CurveStyle::line, {1, 2, NAN}, {-3, 5, 10}}};
  const auto linear = axis_range(curves, &Curve::y, AxisScale::linear);
  CHECK((linear.lower < -3 && linear.upper > 10 && linear.upper < 12));
  const auto logarithmic = axis_range(curves, &Curve::y, AxisScale::logarithmic);
  CHECK((logarithmic.lower < 5 && logarithmic.lower > 4 && logarithmic.upper > 10));
  CHECK(axis_range({}, &Curve::x, AxisScale::linear).upper == 1);
  CurvePanel panel;
  panel.curves = {{"", CurveStyle::points, {-5, 1}, {0, 2}}};
  panel.equal_axes = true;
  const auto ranges = ranges_of(panel);
  CHECK(ranges.x.lower == -ranges.x.upper);
  CHECK(ranges.y.upper == ranges.x.upper);
}

TEST_CASE("PNG files give their pixels back; what is no PNG is refused", "[plot][quick]") {
  const FigureFolder folder;
  Picture picture{3, 2, {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3, 128, 128, 128, 255, 255, 255}};
  const auto bytes = encode_png(picture);
  CHECK(is_complete_png(bytes));
  CHECK_FALSE(is_complete_png(bytes.substr(0, bytes.size() - 4)));
  CHECK_FALSE(is_complete_png("GIF89a"));
  std::ofstream(folder / "x.png", std::ios::binary) << bytes;
  const auto again = read_png(folder / "x.png");
  CHECK(again.width == 3);
  CHECK(again.height == 2);
  CHECK(again.pixels == picture.pixels);
  std::ofstream(folder / "x.png", std::ios::binary) << bytes.substr(0, 40);
  CHECK_THROWS_AS(read_png(folder / "x.png"), FileError);
  CHECK_THROWS_AS(read_png(folder / "missing.png"), FileError);
  picture.pixels.pop_back();
  CHECK_THROWS_AS(encode_png(picture), ValueError);
}
