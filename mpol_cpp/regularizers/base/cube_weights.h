#pragma once

#include <algorithm>
#include <vector>

namespace mpol {

/// Weights of the parts of a proximal map that looks at cubes (solvers/cube_proximal.h), of each problem, >= 0. Those of
/// CubeProximal may be of each image where none joins channels.
struct CubeWeights {
  std::vector<double> variation;       ///< of total variation in each image
  std::vector<double> channels;        ///< of differences from channel to channel
  std::vector<double> spectra;         ///< of the norm of each pixel's spectrum
  std::vector<double> curvature = {};  ///< of total variation of second order in each image; empty: none
  std::vector<double> bases = {};      ///< of coefficients in each of the bases ops::SaraBases; empty: none
  /// Those of pixels' magnitudes where they may be of either sign; empty: none is negative.
  std::vector<double> magnitude = {};

  bool either_sign() const { return !magnitude.empty(); }           ///< whether pixels may be negative
  bool has_channels() const { return any_above_zero(channels); }    ///< whether any problem has such a weight
  bool has_spectra() const { return any_above_zero(spectra); }      ///< whether any problem has such a weight
  bool has_curvature() const { return any_above_zero(curvature); }  ///< whether any problem has such a weight
  bool has_bases() const { return any_above_zero(bases); }          ///< whether any problem has such a weight

 private:
  static bool any_above_zero(const std::vector<double>& weights) {
    return std::any_of(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
  }
};

}  // namespace mpol
