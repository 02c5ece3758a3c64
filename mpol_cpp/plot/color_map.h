#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

/// Colours of a scale from its lower to its upper end. Lightness grows linearly along the sequential scale and falls
/// linearly to both sides of the diverging one, in the perceptual space OKLab, so that equal steps look equal, also in
/// print and to colour-blind eyes.
/// @param entries  at least 2
std::vector<Rgb> color_table(ColorScale scale, std::int64_t entries = 256);

/// Place of a value on the colour scale, from 0 (lower) to 1 (upper); beyond the ends 0 or 1; NaN for NaN.
/// @param scale  diverging: both halves are stretched from the middle outwards
double color_place(double value, double lower, double upper, const ColorNorm& norm, ColorScale scale);

/// Colours of curves, told apart also by colour-blind eyes (Okabe & Ito 2008, the yellow left out); counted round.
Rgb curve_color(std::size_t number);

}  // namespace mpol::plot
