#pragma once

#include <mpol_cpp/analysis/amplitude_bins.h>

namespace mpol::testing {

/// Amplitudes of all samples at once, in rings up to the largest q.
inline AmplitudeBins binned_amplitudes(const torch::Tensor& q, const torch::Tensor& visibilities, const torch::Tensor& weights,
                                       NoiseBias noise_bias, std::int64_t bins = 60) {
  AmplitudeSums sums(q.numel() == 0 ? 0 : q.max().item<double>(), bins);
  sums.add(q, visibilities, weights);
  return sums.bins(noise_bias);
}

}  // namespace mpol::testing
