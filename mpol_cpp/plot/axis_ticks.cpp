#include <mpol_cpp/plot/axis_ticks.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <mpol_cpp/core/format.h>

namespace mpol::plot {
namespace {

int decade_of(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

/// The smallest of 1, 2, 5 times a power of ten that is not below a positive length.
double step_at_least(double length) {
  const double decade = std::pow(10.0, decade_of(length));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * decade >= length * (1 - 1e-9)) return factor * decade;
  return 10 * decade;
}

/// 0.05, 20, 3·10⁻⁵.
std::string short_label(double value) {
  if (value == 0) return "0";
  const int decade = decade_of(std::abs(value));
  if (decade >= -3 && decade <= 4) return short_number(value);
  const double factor = value / std::pow(10.0, decade);
  const auto power = power_of_ten(decade);
  return short_number(factor) == "1" ? power : fmt::format("{}·{}", short_number(factor), power);
}

}  // namespace

double round_length(double length) {
  const double decade = std::pow(10.0, decade_of(length));
  double best = decade;
  for (const double factor : {2.0, 5.0})
    if (factor * decade <= length * (1 + 1e-9)) best = factor * decade;
  return best;
}

std::string power_of_ten(int exponent) {
  static const std::array<const char*, 10> raised = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) result += raised[static_cast<std::size_t>(digit - '0')];
  return result;
}

std::string short_number(double value, int digits) { return fmt::format("{:.{}g}", value, digits); }

std::vector<Tick> linear_ticks(double first, double last, std::int64_t wanted) {
  const double lower = std::min(first, last), upper = std::max(first, last);
  if (!(upper > lower) || !std::isfinite(lower) || !std::isfinite(upper)) return {};
  const double step = step_at_least((upper - lower) / static_cast<double>(std::max<std::int64_t>(wanted, 1)));
  const double largest = std::max(std::abs(lower), std::abs(upper));
  const int decade = decade_of(largest);
  const bool scientific = decade < -3 || decade > 5;
  const double unit = scientific ? std::pow(10.0, decade) : 1.0;
  const int digits = std::max(0, -decade_of(step / unit));
  std::vector<Tick> ticks;
  for (double k = std::ceil(lower / step - 1e-6) + 0.0; k * step <= upper + 1e-6 * step; ++k) {
    const double value = k * step;
    auto label = fmt::format("{:.{}f}", value / unit, digits);
    if (scientific) label = k == 0 ? "0" : label + "·" + power_of_ten(decade);
    ticks.push_back({value, std::move(label)});
  }
  return ticks;
}

std::vector<Tick> stretched_ticks(double lower, double upper, const std::function<double(double)>& place, double spacing) {
  const double largest = std::max(std::abs(lower), std::abs(upper));
  if (!(upper > lower) || !std::isfinite(lower) || !std::isfinite(upper)) return {};
  // Zero, then 1, 5, 2 times powers of ten from the largest down: the first to come has the place.
  std::vector<double> wanted = {0.0};
  for (const double factor : {1.0, 5.0, 2.0}) {
    for (int decade = decade_of(largest); decade > decade_of(largest) - 4; --decade) {
      const double value = factor * std::pow(10.0, decade);
      wanted.insert(wanted.end(), {value, -value});
    }
  }
  std::vector<double> taken;
  for (const double value : wanted) {
    if (value < lower || value > upper) continue;
    const double at = place(value);
    if (std::any_of(taken.begin(), taken.end(), [&](double other) { return std::abs(place(other) - at) < spacing; })) continue;
    taken.push_back(value);
  }
  std::sort(taken.begin(), taken.end());
  std::vector<Tick> ticks;
  ticks.reserve(taken.size());
  for (const double value : taken) ticks.push_back({value, short_label(value)});
  return ticks;
}

std::vector<Tick> logarithmic_ticks(double lower, double upper, std::int64_t wanted) {
  if (!(lower > 0) || !(upper > lower) || !std::isfinite(upper)) return {};
  const int first = static_cast<int>(std::ceil(std::log10(lower) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(upper) + 1e-9));
  std::vector<Tick> ticks;
  if (last - first >= 1) {
    const int stride = std::max(1, (last - first) / static_cast<int>(std::max<std::int64_t>(wanted, 1)));
    for (int exponent = first; exponent <= last; exponent += stride)
      ticks.push_back({std::pow(10.0, exponent), power_of_ten(exponent)});
    return ticks;
  }
  for (int exponent = first - 1; exponent <= last + 1; ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, exponent);
      if (value >= lower * (1 - 1e-9) && value <= upper * (1 + 1e-9)) ticks.push_back({value, short_number(value)});
    }
  }
  return ticks;
}

}  // namespace mpol::plot
