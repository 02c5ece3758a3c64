#include <mpol_cpp/plot/color_map.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::plot {
namespace {

/// A colour in OKLab's polar form: lightness in [0, 1], chroma >= 0, hue in degrees.
struct Polar {
  double lightness, chroma, hue;
};

/// Linear sRGB of an OKLab colour (Ottosson 2020); components outside [0, 1] cannot be shown.
std::array<double, 3> linear_rgb(const Polar& color) {
  const double a = color.chroma * std::cos(color.hue * units::degree);
  const double b = color.chroma * std::sin(color.hue * units::degree);
  const double l = std::pow(color.lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(color.lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(color.lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool can_be_shown(const std::array<double, 3>& rgb) {
  return std::all_of(rgb.begin(), rgb.end(), [](double x) { return x >= -1e-4 && x <= 1 + 1e-4; });
}

std::uint8_t to_byte(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double encoded = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * encoded));
}

/// The colour, with its chroma lowered until a screen can show it: lightness and hue are kept.
Rgb shown(Polar color) {
  auto rgb = linear_rgb(color);
  while (!can_be_shown(rgb) && color.chroma > 1e-4) {
    color.chroma *= 0.99;
    rgb = linear_rgb(color);
  }
  return {to_byte(rgb[0]), to_byte(rgb[1]), to_byte(rgb[2])};
}

/// Night blue through violet, red and orange to pale yellow.
Polar sequential(double t) {
  return {0.13 + 0.85 * t, 0.05 + 0.135 * std::sin(units::pi * std::pow(t, 1.2)), 283 + 182 * std::pow(t, 0.85)};
}

/// Blue, white, red.
Polar diverging(double t) {
  const double side = 2 * t - 1;
  return {0.97 - 0.55 * std::abs(side), 0.155 * std::pow(std::abs(side), 0.9), side < 0 ? 255.0 : 28.0};
}

/// Stretched share, both in [0, 1].
double stretched(double share, const ColorNorm& norm) {
  switch (norm.stretch) {
    case Stretch::power:
      return std::pow(share, norm.gamma);
    case Stretch::asinh:
      return std::asinh(share / norm.softening) / std::asinh(1 / norm.softening);
    case Stretch::linear:
      break;
  }
  return share;
}

}  // namespace

double color_place(double value, double lower, double upper, const ColorNorm& norm, ColorScale scale) {
  if (std::isnan(value)) return value;
  const double share = upper > lower ? std::clamp((value - lower) / (upper - lower), 0.0, 1.0) : 0.0;
  if (scale == ColorScale::sequential) return stretched(share, norm);
  const double side = 2 * share - 1;
  return 0.5 * (1 + std::copysign(stretched(std::abs(side), norm), side));
}

Rgb curve_color(std::size_t number) {
  static constexpr std::array<Rgb, 7> colors = {
      {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {86, 180, 233}, {230, 159, 0}, {60, 60, 60}}};
  return colors[number % colors.size()];
}

std::vector<Rgb> color_table(ColorScale scale, std::int64_t entries) {
  if (entries < 2) throw ValueError(fmt::format("colour table of {} entries: at least 2", entries));
  std::vector<Rgb> table;
  for (std::int64_t i = 0; i < entries; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(entries - 1);
    table.push_back(shown(scale == ColorScale::sequential ? sequential(t) : diverging(t)));
  }
  return table;
}

}  // namespace mpol::plot
