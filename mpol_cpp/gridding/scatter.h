#pragma once

#include <cstdint>

namespace mpol {

/// How far samples scatter about their cell's mean in units of the sigma that their weights claim.
struct Scatter {
  double real = 0;         ///< median over cells with more than one sample; about 1 when weights are right
  double imag = 0;
  std::int64_t cells = 0;  ///< cells with more than one sample

  /// Medians above this mean that the weights are wrong (MPoL's bound).
  static constexpr double limit = 1.2;
  bool acceptable() const { return real <= limit && imag <= limit; }
};

}  // namespace mpol
