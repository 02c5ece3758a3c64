#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <mpol_cpp/plot/figure.h>

namespace mpol::plot {

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

/// Colours of a scale from its lower to its upper end. Lightness grows linearly along the sequential scale and falls
/// linearly to both sides of the diverging one, in the perceptual space OKLab, so that equal steps look equal, also in
/// print and to colour-blind eyes.
/// @param entries  at least 2
std::vector<Rgb> colour_table(ColourScale scale, std::int64_t entries = 256);

/// Entry of a table for a value between the ends of a scale; beyond them the end's colour, for NaN grey.
Rgb colour_of(double value, double lower, double upper, const std::vector<Rgb>& table);

}  // namespace mpol::plot
