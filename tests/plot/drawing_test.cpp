#include "catch.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/color_map.h>
#include <mpol_cpp/plot/panel_geometry.h>

using namespace mpol;
using namespace mpol::plot;

namespace {

/// Relative luminance of a colour, raised to the power that makes equal steps look equal.
double lightness(Rgb color) {
  const auto linear = [](std::uint8_t byte) { return std::pow(byte / 255.0, 2.2); };
  return std::cbrt(0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue));
}

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> result;
  result.reserve(ticks.size());
  for (const auto& tick : ticks) result.push_back(tick.label);
  return result;
}

}  // namespace

TEST_CASE("colour scales grow evenly in lightness", "[plot][quick]") {
  const auto table = color_table(ColorScale::sequential);
  REQUIRE(table.size() == 256);
  const double whole = lightness(table.back()) - lightness(table.front());
  for (std::size_t i = 32; i < 256; i += 16) {
    const double step = lightness(table[i]) - lightness(table[i - 16]);
    CHECK(step > 0.5 * whole / 15.9);
    CHECK(step < 1.6 * whole / 15.9);
  }
  const auto diverging = color_table(ColorScale::diverging, 255);
  CHECK(lightness(diverging[127]) > 0.97);
  CHECK(diverging.front().blue > diverging.front().red);
  CHECK(diverging.back().red > diverging.back().blue);
  CHECK(lightness(diverging.front()) == Approx(lightness(diverging.back())).margin(0.06));
  CHECK_THROWS_AS(color_table(ColorScale::sequential, 1), ValueError);
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
