#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>

#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/loose_samples.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/likelihoods/sky_checks.h>

namespace mpol {
MiniBatchLikelihoodImpl::MiniBatchLikelihoodImpl(const GridCoords& coords, Visibilities visibilities, ChannelMap channels,
                                                 const VisibilitySamplerOptions& batches, NoiseModel noise, NufftOptions options)
    : Likelihood(coords),
      visibilities_(std::move(visibilities)),
      channels_(std::move(channels)),
      sampler_(coords, visibilities_.baselines(), batches),
      noise_(noise),
      options_(options) {
  const auto all = losses::detail::loose_samples(coords, visibilities_, channels_);
  samples_ = all.visibilities.data().numel();
  normaliser_ = static_cast<double>(all.occupied_cells);
}

std::shared_ptr<Likelihood> MiniBatchLikelihoodImpl::likelihood_of(const Tensor& samples, torch::Device device) const {
  const auto own = visibilities_.select(samples);
  std::shared_ptr<Likelihood> likelihood;
  if (noise_.kind == NoiseModel::Kind::gaussian) likelihood = LooseLikelihood(coords(), own, channels_, options_).ptr();
  else likelihood = NoiseLikelihood(coords(), own, channels_, noise_, options_).ptr();
  likelihood->as_module().to(device);
  return likelihood;
}

MiniBatchLikelihoodImpl::Batch MiniBatchLikelihoodImpl::take_batch(torch::Device device) {
  const auto epoch = position_ / batches();
  if (epoch != epoch_) batches_ = sampler_.epoch(epoch), epoch_ = epoch;
  const auto& samples = batches_[static_cast<std::size_t>(position_++ % batches())];
  return {likelihood_of(samples, device), static_cast<double>(visibilities_.nvis()) / static_cast<double>(samples.size(0))};
}

Tensor MiniBatchLikelihoodImpl::chi_squared(const Tensor& sky) {
  if (torch::GradMode::is_enabled() && sky.requires_grad()) {
    const auto batch = take_batch(sky.device());
    return batch.likelihood->chi_squared(sky) * batch.scale;
  }
  Tensor sum;
  for (const auto& samples : sampler_.epoch(0)) {
    const auto value = likelihood_of(samples, sky.device())->chi_squared(sky).to(torch::kFloat64);
    sum = sum.defined() ? sum + value : value;
  }
  return sum.to(sky.scalar_type());
}

Tensor MiniBatchLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  const auto batch = take_batch(sky.device());
  auto slope = at::empty_like(sky, at::MemoryFormat::Contiguous);
  const auto value = batch.likelihood->value_and_gradient(sky, slope, Accumulate::overwrite);
  if (accumulate == Accumulate::overwrite) gradient.zero_();
  gradient.add_(slope, batch.scale);
  return value * batch.scale;
}

std::int64_t MiniBatchLikelihoodImpl::memory_bytes() const {
  auto bytes = visibilities_.memory_bytes() + sampler_.memory_bytes();
  for (const auto& samples : batches_) bytes += static_cast<std::int64_t>(samples.nbytes());
  return bytes;
}

NamedTensors MiniBatchLikelihoodImpl::working_state() const {
  return {{"position", at::scalar_tensor(position_, torch::kInt64)}};
}

void MiniBatchLikelihoodImpl::load_working_state(const NamedTensors& state) {
  const auto position = state.find("position");
  if (position == state.end() || state.size() != 1 || position->second.numel() != 1) {
    throw FileError("the state of a likelihood of batches is the number of batches taken, position, alone");
  }
  const auto taken = position->second.item<std::int64_t>();
  if (taken < 0)
    throw FileError(fmt::format("the state of a likelihood of batches has a position of {}; it must be >= 0", taken));
  position_ = taken;
}

std::string MiniBatchLikelihoodImpl::name() const {
  const auto noise = noise_.kind == NoiseModel::Kind::gaussian ? std::string() : " with " + to_string(noise_.kind) + " noise";
  return "loose" + noise + " in batches";
}

}  // namespace mpol
