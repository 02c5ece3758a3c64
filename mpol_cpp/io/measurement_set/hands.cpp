#include <mpol_cpp/io/measurement_set/hands.h>

#include <algorithm>
#include <array>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

/// casacore's Stokes::StokesTypes, as CORR_TYPE holds them.
enum Correlation : std::int32_t { corr_i = 1, corr_q, corr_u, corr_v, rr, rl, lr, ll, corr_xx, xy, yx, corr_yy };

constexpr std::complex<float> minus_i{0, -1}, plus_i{0, 1};

/// One way to make a polarisation.
struct Recipe {
  Polarization polarization;
  std::int32_t a, b;  // b 0: a alone
  std::complex<float> factor_a, factor_b;
};

constexpr std::array recipes = {Recipe{Polarization::stokes_i, corr_i, 0, 1, 1},
                                Recipe{Polarization::stokes_i, corr_xx, corr_yy, 1, 1},
                                Recipe{Polarization::stokes_i, rr, ll, 1, 1},
                                Recipe{Polarization::stokes_q, corr_q, 0, 1, 1},
                                Recipe{Polarization::stokes_q, corr_xx, corr_yy, 1, -1},
                                Recipe{Polarization::stokes_q, rl, lr, 1, 1},
                                Recipe{Polarization::stokes_u, corr_u, 0, 1, 1},
                                Recipe{Polarization::stokes_u, xy, yx, 1, 1},
                                Recipe{Polarization::stokes_u, rl, lr, minus_i, plus_i},
                                Recipe{Polarization::stokes_v, corr_v, 0, 1, 1},
                                Recipe{Polarization::stokes_v, xy, yx, minus_i, plus_i},
                                Recipe{Polarization::stokes_v, rr, ll, 1, -1},
                                Recipe{Polarization::xx, corr_xx, 0, 1, 1},
                                Recipe{Polarization::yy, corr_yy, 0, 1, 1},
                                Recipe{Polarization::rr, rr, 0, 1, 1},
                                Recipe{Polarization::ll, ll, 0, 1, 1}};

}  // namespace

const std::vector<std::string>& polarization_names() {
  static const std::vector<std::string> names = {"I", "Q", "U", "V", "XX", "YY", "RR", "LL"};
  return names;
}

Polarization polarization_from_name(std::string_view name) {
  const auto& names = polarization_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw ValueError(fmt::format("polarisation {}; must be one of {}", name, fmt::join(names, ", ")));
  return static_cast<Polarization>(found - names.begin());
}

Stokes stokes_of(Polarization polarization) {
  return stokes_from_name(polarization_names()[static_cast<std::size_t>(polarization)]);
}

std::optional<HandPair> hands_for(const std::vector<std::int32_t>& correlations, const PolarizationChoice& choice) {
  const auto place = [&](std::int32_t wanted) -> std::optional<std::int64_t> {
    const auto found = std::find(correlations.begin(), correlations.end(), wanted);
    if (wanted == 0 || found == correlations.end()) return std::nullopt;
    return found - correlations.begin();
  };
  const bool is_i = choice.polarization == Polarization::stokes_i;
  const bool one_suffices = is_i && choice.needed == HandsNeeded::one;
  for (const auto& recipe : recipes) {
    if (recipe.polarization != choice.polarization) continue;
    const auto a = place(recipe.a), b = place(recipe.b);
    if (recipe.b == 0 && a) return HandPair{*a, std::nullopt, 1, 1, true, false};
    if (recipe.b == 0) continue;
    if (a && b) return HandPair{*a, b, recipe.factor_a, recipe.factor_b, is_i, one_suffices};
    if (one_suffices && (a || b)) return HandPair{a ? *a : *b, std::nullopt, 1, 1, true, true};
  }
  return std::nullopt;
}

std::string correlation_names(const std::vector<std::int32_t>& correlations) {
  static constexpr std::array correlation_list = {"undefined", "I",  "Q",  "U",  "V",  "RR", "RL",
                                                  "LR",        "LL", "XX", "XY", "YX", "YY"};
  std::vector<std::string> found;
  for (const auto correlation : correlations) {
    const bool known = correlation >= 0 && correlation < static_cast<std::int32_t>(correlation_list.size());
    found.push_back(known ? correlation_list[static_cast<std::size_t>(correlation)] : fmt::format("type {}", correlation));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

bool is_parallel_hand(std::int32_t correlation) {
  return correlation == corr_i || correlation == rr || correlation == ll || correlation == corr_xx || correlation == corr_yy;
}

}  // namespace mpol::io
