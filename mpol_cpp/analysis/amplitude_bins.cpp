#include <mpol_cpp/analysis/amplitude_bins.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

AmplitudeSums::AmplitudeSums(double longest, std::int64_t bins) : width_(0) {
  if (bins < 1) throw ValueError(fmt::format("{} bins of amplitudes: at least 1", bins));
  width_ = longest * (1 + 1e-12) / static_cast<double>(bins);
  rings_.resize(static_cast<std::size_t>(bins));
}

void AmplitudeSums::add(const Tensor& q, const Tensor& visibilities, const Tensor& weights) {
  if (q.sizes() != visibilities.sizes() || q.sizes() != weights.sizes())
    throw ShapeError(fmt::format("amplitudes: q ({}), visibilities ({}) and weights ({}) must have one shape",
                                 fmt::join(q.sizes(), ", "), fmt::join(visibilities.sizes(), ", "),
                                 fmt::join(weights.sizes(), ", ")));
  const auto on_cpu = [](const Tensor& x, torch::Dtype dtype) {
    return x.detach().to(torch::kCPU, dtype).resolve_conj().flatten().contiguous();
  };
  const auto lengths = on_cpu(q, torch::kFloat64), given = on_cpu(weights, torch::kFloat64);
  const auto values = on_cpu(visibilities, torch::kComplexDouble);
  const auto *length = lengths.const_data_ptr<double>(), *weight = given.const_data_ptr<double>();
  const auto* value = values.const_data_ptr<c10::complex<double>>();
  for (std::int64_t i = 0; i < lengths.numel(); ++i) {
    const auto ring = width_ > 0 ? static_cast<std::size_t>(length[i] / width_) : 0;
    auto& sums = rings_[std::min(ring, rings_.size() - 1)];
    sums.weight += weight[i];
    sums.power += weight[i] * (value[i].real() * value[i].real() + value[i].imag() * value[i].imag());
    sums.q += weight[i] * length[i];
    sums.count += 1;
  }
}

AmplitudeBins AmplitudeSums::bins(NoiseBias noise_bias) const {
  AmplitudeBins result;
  for (const auto& ring : rings_) {
    if (ring.count == 0) continue;
    const double noise = noise_bias == NoiseBias::subtract ? 2 * ring.count : 0;
    result.q.push_back(ring.q / ring.weight);
    result.amplitude.push_back(std::sqrt(std::max(0.0, ring.power - noise) / ring.weight));
  }
  return result;
}

}  // namespace mpol
