#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// One visibility as sums over all of them see it.
struct Sample {
  double u, v;        ///< wavelengths
  double real, imag;  ///< Jy
  double weight;      ///< Jy^-2
};

/// Sums over all samples of all channels, on all threads, the same for any number of them: blocks of fixed length are dealt to a
/// fixed number of partial sums, which are added in their order. Memory does not grow with the samples.
/// @param zero  what the sums begin with; Sums has operator+=
/// @param add   called as add(sums, sample)
template <typename Sums, typename Add>
Sums sum_over_samples(const Visibilities& visibilities, const Sums& zero, const Add& add) {
  constexpr std::int64_t block = 1 << 13, most_parts = 64;
  const auto nvis = visibilities.nvis(), of_channel = (nvis + block - 1) / block, blocks = of_channel * visibilities.nchan();
  const auto parts = std::min(blocks, most_parts);
  std::vector<Sums> sums(static_cast<std::size_t>(parts), zero);
  ops::share_tasks(parts, 1, [&](std::int64_t part, std::int64_t) {
    auto& own = sums[static_cast<std::size_t>(part)];
    for (auto b = part; b < blocks; b += parts) {
      const auto begin = b % of_channel * block;
      const auto samples = visibilities.block(b / of_channel, begin, std::min(nvis, begin + block));
      const auto *u = samples.u.const_data_ptr<double>(), *v = samples.v.const_data_ptr<double>(),
                 *weight = samples.weights.const_data_ptr<double>();
      const auto* data = samples.data.const_data_ptr<c10::complex<double>>();
      for (std::int64_t i = 0; i < samples.u.numel(); ++i)
        add(own, Sample{u[i], v[i], data[i].real(), data[i].imag(), weight[i]});
    }
  });
  auto total = std::move(sums.front());
  for (std::size_t i = 1; i < sums.size(); ++i) total += sums[i];
  return total;
}

}  // namespace mpol
