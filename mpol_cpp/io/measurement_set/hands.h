#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpol_cpp/visibilities/stokes.h>

namespace mpol::io {

/// What is made from the correlations (hands) of a sample.
enum class Polarization {
  stokes_i,  ///< of I, else XX and YY, else RR and LL
  stokes_q,  ///< of Q, else XX and YY, else RL and LR
  stokes_u,  ///< of U, else XY and YX, else RL and LR
  stokes_v,  ///< of V, else XY and YX, else RR and LL
  xx,        ///< one linear hand alone
  yy,        ///< one linear hand alone
  rr,        ///< one circular hand alone
  ll         ///< one circular hand alone
};

/// Whether Stokes I needs both parallel hands.
enum class HandsNeeded {
  both,  ///< a sample with one of them flagged is left out
  one,   ///< the other one stands for I alone: right for unpolarised sources
};

/// Which polarisation is wanted, and of how many hands.
struct PolarizationChoice {
  Polarization polarization = Polarization::stokes_i;  ///< what is made
  HandsNeeded needed = HandsNeeded::both;              ///< for Stokes I
};

/// "I", "Q", "U", "V", "XX", "YY", "RR" or "LL". @throws ValueError for other names
Polarization polarization_from_name(std::string_view name);
/// The names, as they are written.
const std::vector<std::string>& polarization_names();
/// What data of it, and images of these, are of.
Stokes stokes_of(Polarization polarization);

/// How the wanted polarisation is combined from one or two of a sample's correlations.
///
/// I is their mean weighted by their weights, with the sum of these, which is best where the source is unpolarised. Q, U and V
/// are (factor_a a + factor_b b)/2 with the weight 4 w_a w_b/(w_a + w_b).
struct HandPair {
  std::int64_t a = 0;                              ///< index of a correlation among those of the set
  std::optional<std::int64_t> b;                   ///< without it a alone
  std::complex<float> factor_a = 1, factor_b = 1;  ///< of Q, U and V
  bool weighted_mean = true;                       ///< of I, and where a is alone
  bool one_suffices = false;                       ///< of a weighted mean
};

/// @param correlations  CORR_TYPE of the set: casacore's Stokes::StokesTypes, I = 1, RR = 5, XX = 9, …
/// @returns nothing where the correlations for it are not there
std::optional<HandPair> hands_for(const std::vector<std::int32_t>& correlations, const PolarizationChoice& choice);

/// "XX, YY".
std::string correlation_names(const std::vector<std::int32_t>& correlations);

/// Whether a correlation sees Stokes I: I, RR, LL, XX or YY.
bool is_parallel_hand(std::int32_t correlation);

}  // namespace mpol::io
