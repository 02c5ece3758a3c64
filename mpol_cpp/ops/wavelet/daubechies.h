#pragma once

#include <cstdint>
#include <vector>

namespace mpol::ops {

inline constexpr std::int64_t most_vanishing_moments = 8;

/// The filters of a level of a wavelet transform.
struct DaubechiesFilters {
  std::vector<double> low;   ///< h, 2 n coefficients, see mpol::daubechies_filter()
  std::vector<double> high;  ///< g_k = (-1)^k h_{2n-1-k}
};

/// Those of n vanishing moments, made once.
/// @throws ValueError unless 1 <= vanishing_moments <= most_vanishing_moments
const DaubechiesFilters& daubechies_filters(std::int64_t vanishing_moments);

}  // namespace mpol::ops
