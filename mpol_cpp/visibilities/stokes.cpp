#include <mpol_cpp/visibilities/stokes.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::array stokes_names = {
    std::pair(Stokes::i, std::string_view("I")),   std::pair(Stokes::q, std::string_view("Q")),
    std::pair(Stokes::u, std::string_view("U")),   std::pair(Stokes::v, std::string_view("V")),
    std::pair(Stokes::rr, std::string_view("RR")), std::pair(Stokes::ll, std::string_view("LL")),
    std::pair(Stokes::rl, std::string_view("RL")), std::pair(Stokes::lr, std::string_view("LR")),
    std::pair(Stokes::xx, std::string_view("XX")), std::pair(Stokes::yy, std::string_view("YY")),
    std::pair(Stokes::xy, std::string_view("XY")), std::pair(Stokes::yx, std::string_view("YX"))};

}  // namespace

std::string to_string(Stokes stokes) {
  const auto* found =
      std::find_if(stokes_names.begin(), stokes_names.end(), [&](const auto& own) { return own.first == stokes; });
  return std::string(found->second);
}

std::string stokes_text(Stokes stokes) {
  const bool parameter = static_cast<int>(stokes) > 0;
  return (parameter ? "Stokes " : "correlation ") + to_string(stokes);
}

bool is_intensity(Stokes stokes) {
  constexpr std::array intensities = {Stokes::i, Stokes::rr, Stokes::ll, Stokes::xx, Stokes::yy};
  return std::find(intensities.begin(), intensities.end(), stokes) != intensities.end();
}

Stokes stokes_from_name(std::string_view name) {
  for (const auto& [stokes, own] : stokes_names) {
    if (own == name) return stokes;
  }
  std::vector<std::string_view> all;
  for (const auto& [stokes, own] : stokes_names) all.push_back(own);
  throw ValueError(fmt::format("polarisation '{}' is unknown; use one of {}", name, fmt::join(all, ", ")));
}

std::optional<Stokes> stokes_from_number(double number) {
  constexpr double rounding = 1e-6;  // of headers
  for (const auto& [stokes, name] : stokes_names) {
    if (std::abs(number - static_cast<double>(stokes)) < rounding) return stokes;
  }
  return std::nullopt;
}

}  // namespace mpol
