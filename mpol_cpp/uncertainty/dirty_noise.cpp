#include <mpol_cpp/uncertainty/dirty_noise.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/simulation/thermal_noise.h>

namespace mpol {
namespace {

constexpr std::int64_t numbers_of_seed = 4096;  // consecutive samples that share a seed

DirtyImagerOptions natural() { return DirtyImagerOptions().weighting(Weighting::natural); }

/// Vigna's splitmix64: neighbouring values become unrelated seeds.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// Complex normal numbers of the samples [begin, end) of a row, whatever the cut into such ranges.
Tensor standard_noise(std::uint64_t seed, std::int64_t begin, std::int64_t end) {
  auto noise = at::empty({end - begin}, torch::kComplexDouble);
  const auto first = begin / numbers_of_seed, last = (end + numbers_of_seed - 1) / numbers_of_seed;
  auto* values = noise.mutable_data_ptr<c10::complex<double>>();
  ops::share_tasks(last - first, 1, [&](std::int64_t task, std::int64_t) {
    const auto part = first + task, from = std::max(begin, part * numbers_of_seed),
               to = std::min(end, (part + 1) * numbers_of_seed);
    const auto own = standard_complex_noise(numbers_of_seed, mixed(seed ^ mixed(static_cast<std::uint64_t>(part))));
    const auto* drawn = own.const_data_ptr<c10::complex<double>>() + (from - part * numbers_of_seed);
    std::copy_n(drawn, to - from, values + (from - begin));
  });
  return noise;
}

/// A weight of 0 says nothing of the noise and leaves its sample out.
Tensor of_variance(const Tensor& noise, const Tensor& weights) {
  const auto own = weights.to(torch::kCPU, torch::kFloat64);
  return noise * at::where(own > 0, own.rsqrt(), at::zeros_like(own));
}

}  // namespace

DirtyNoise::DirtyNoise(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels)
    : imager_(coords, visibilities, natural().channel_map(channels)),
      weights_(visibilities.weights()),
      factors_((0.5 * coords.cell_area() / imager_.normalization()).view({-1, 1, 1})) {}

DirtyNoise::DirtyNoise(const GriddedDataset& dataset)
    : imager_(dataset, natural()),
      weights_(dataset->weights()),
      factors_((0.5 * dataset->coords().cell_area() / imager_.normalization()).view({-1, 1, 1})) {}

Tensor DirtyNoise::draw(std::uint64_t seed, std::uint64_t number) const {
  const torch::NoGradGuard no_grad;
  const auto own = mixed(seed) ^ mixed(mixed(number));
  if (imager_.imaging() == Imaging::cells) {
    return imager_.image_of(of_variance(standard_noise(own, 0, weights_.numel()), weights_)) * factors_;
  }
  const auto block = [&](std::int64_t channel, std::int64_t begin, std::int64_t end) {
    const auto noise = standard_noise(own ^ mixed(static_cast<std::uint64_t>(channel) << 32U), begin, end);
    return of_variance(noise, weights_.select(0, channel).slice(0, begin, end));
  };
  return imager_.image_of(VisibilityBlocks(block)) * factors_;
}

}  // namespace mpol
