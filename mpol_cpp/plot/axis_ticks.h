#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mpol::plot {

/// A labelled place on an axis.
struct Tick {
  double value;
  std::string label;
};

/// Ticks at multiples of 1, 2 or 5 times a power of ten between two ends (in either order), about `wanted` of them, with
/// as many digits as they need; a common power of ten is in the labels (`2·10⁻⁴`) when they would be long otherwise.
std::vector<Tick> linear_ticks(double first, double last, std::int64_t wanted);

/// Ticks of a stretched colour bar: round values no closer to each other than `spacing` of the bar's length.
/// @param place  position of a value along the bar, 0 to 1, increasing
std::vector<Tick> stretched_ticks(double lower, double upper, const std::function<double(double)>& place, double spacing);

/// Powers of ten between two positive ends, thinned out to about `wanted`; when there are fewer than two, also 2 and 5
/// times them.
std::vector<Tick> logarithmic_ticks(double lower, double upper, std::int64_t wanted);

/// The largest of 1, 2, 5 times a power of ten that does not exceed a positive length.
double round_length(double length);

/// A power of ten in superscripts, `10⁻⁴`.
std::string power_of_ten(int exponent);

/// A number as people write it: up to `digits` significant digits, without trailing zeros.
std::string short_number(double value, int digits = 4);

}  // namespace mpol::plot
