#include <mpol_cpp/datasets/visibility_sampler.h>

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// The bits of a 32-bit number, apart by one.
std::uint64_t spread_bits(std::uint64_t bits) {
  bits = (bits | (bits << 16)) & 0x0000ffff0000ffff;
  bits = (bits | (bits << 8)) & 0x00ff00ff00ff00ff;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f0f0f0f0f;
  bits = (bits | (bits << 2)) & 0x3333333333333333;
  return (bits | (bits << 1)) & 0x5555555555555555;
}

/// Samples in the order of their uv cells along Morton's curve, on which neighbours stay near each other.
Tensor along_the_plane(const GridCoords& coords, const Tensor& u, const Tensor& v) {
  const auto samples = u.numel();
  auto keys = at::empty({samples}, torch::kInt64);
  auto* key = keys.mutable_data_ptr<std::int64_t>();
  const auto* us = u.const_data_ptr<double>();
  const auto* vs = v.const_data_ptr<double>();
  constexpr std::int64_t origin = std::int64_t{1} << 30;  // cells beyond the grid have numbers below zero
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto column = static_cast<std::uint64_t>(std::clamp<std::int64_t>(coords.uv_cell(us[i]) + origin, 0, 2 * origin - 1));
    const auto row = static_cast<std::uint64_t>(std::clamp<std::int64_t>(coords.uv_cell(vs[i]) + origin, 0, 2 * origin - 1));
    key[i] = static_cast<std::int64_t>(spread_bits(column) | (spread_bits(row) << 1));
  }
  return at::argsort(keys, /*stable=*/true, /*dim=*/0, /*descending=*/false);
}

at::Generator epoch_generator(std::uint64_t seed, std::int64_t epoch) {
  // Neighbouring seeds and epochs give unrelated sequences: the constant of Fibonacci hashing mixes them.
  return at::detail::createCPUGenerator((seed + 1) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(epoch));
}

}  // namespace

VisibilitySampler::VisibilitySampler(const GridCoords& coords, const Baselines& baselines,
                                     const VisibilitySamplerOptions& options)
    : options_(options), nvis_(baselines.nvis()) {
  if (options.batch_size() < 1) {
    throw ValueError(fmt::format("batch_size is {}; it must be at least 1 sample", options.batch_size()));
  }
  batches_ = (nvis_ + options.batch_size() - 1) / options.batch_size();
  if (options.sampling() == Sampling::random) return;
  const auto [u, v] = baselines.channel(0);
  if (options.sampling() == Sampling::compact) sorted_ = along_the_plane(coords, u.contiguous(), v.contiguous());
  else sorted_ = at::argsort(u * u + v * v, /*stable=*/true, /*dim=*/0, /*descending=*/false);
}

Tensor VisibilitySampler::order(std::int64_t number) const {
  const auto generator = epoch_generator(options_.seed(), number);
  if (options_.sampling() == Sampling::random) return at::randperm(nvis_, generator, torch::kInt64);
  if (options_.sampling() == Sampling::compact) {
    // The curve is cut elsewhere in each epoch.
    const auto shift = at::randint(nvis_, {1}, generator, torch::kInt64).item<std::int64_t>();
    return sorted_.roll(shift);
  }
  // Every batch gets one of each `batches` samples of about the same length: row b of the result is batch b.
  auto dealt = at::empty({nvis_}, torch::kInt64);
  auto* target = dealt.mutable_data_ptr<std::int64_t>();
  const auto* source = sorted_.const_data_ptr<std::int64_t>();
  const std::int64_t rest = nvis_ % batches_;
  const auto begin_of = [&](std::int64_t batch) { return batch * (nvis_ / batches_) + std::min(batch, rest); };
  for (std::int64_t round = 0; round * batches_ < nvis_; ++round) {
    const auto many = std::min(batches_, nvis_ - round * batches_);
    const auto deal = at::randperm(many, generator, torch::kInt64);
    const auto* to = deal.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < many; ++i) target[begin_of(to[i]) + round] = source[round * batches_ + i];
  }
  return dealt;
}

std::vector<Tensor> VisibilitySampler::epoch(std::int64_t number) const {
  std::vector<Tensor> batches;
  const auto samples = order(number);
  for (const auto& batch : samples.tensor_split(batches_)) batches.push_back(std::get<0>(batch.sort()));
  if (options_.sampling() != Sampling::compact) return batches;
  // Neighbouring batches would follow each other along the curve.
  const auto turn = at::randperm(batches_, epoch_generator(~options_.seed(), number), torch::kInt64);
  std::vector<Tensor> shuffled;
  for (std::int64_t i = 0; i < batches_; ++i) shuffled.push_back(batches[static_cast<std::size_t>(turn[i].item<std::int64_t>())]);
  return shuffled;
}

}  // namespace mpol
