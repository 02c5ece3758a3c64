#include <mpol_cpp/likelihoods/block_likelihood.h>

#include <utility>

#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/likelihoods/loose_samples.h>
#include <mpol_cpp/likelihoods/sky_checks.h>

namespace mpol {
namespace {

/// u and v of every channel in wavelengths, (n, nvis), or (1, nvis) when they are shared.
std::pair<Tensor, Tensor> all_baselines(const Baselines& baselines) {
  std::vector<Tensor> u, v;
  const auto count = baselines.shared() ? 1 : baselines.nchan();
  u.reserve(static_cast<std::size_t>(count));
  v.reserve(static_cast<std::size_t>(count));
  for (std::int64_t channel = 0; channel < count; ++channel) {
    const auto [columns, rows] = baselines.channel(channel);
    u.push_back(columns);
    v.push_back(rows);
  }
  return {at::stack(u), at::stack(v)};
}

}  // namespace

BlockLikelihoodImpl::BlockLikelihoodImpl(const GridCoords& coords, const std::vector<DataBlock>& blocks, NufftOptions options)
    : Likelihood(coords) {
  if (blocks.empty()) throw ValueError("0 blocks of data: give at least 1");
  nchan_ = blocks.front().channels.nchan();
  blocks_.reserve(blocks.size());
  auto occupied = at::zeros({nchan_, coords.npix(), coords.npix()}, torch::kBool);
  for (const auto& block : blocks) {
    if (block.channels.nchan() != nchan_) {
      throw ShapeError(fmt::format("a block of {} image channels beside one of {}", block.channels.nchan(), nchan_));
    }
    auto samples = losses::detail::loose_samples(coords, block.visibilities, block.channels);
    losses::detail::mark_occupied(coords, samples.visibilities.baselines(), samples.image_channels, occupied);
    auto [u, v] = block.fits_shift ? all_baselines(samples.visibilities.baselines()) : std::pair<Tensor, Tensor>();
    samples_ += samples.visibilities.data().numel();
    blocks_.push_back({Nufft(coords, samples.visibilities.baselines(), samples.visibilities.nchan(), options),
                       std::make_shared<losses::detail::ImageChannels>(std::move(samples.image_channels), nchan_),
                       std::move(u),
                       std::move(v),
                       samples.visibilities.data().resolve_conj(),
                       samples.visibilities.weights(),
                       block.fits_shift,
                       block.fits_amplitude,
                       block.fits_weight_scale,
                       {},
                       {},
                       {}});
  }
  normaliser_ = static_cast<double>(occupied.sum().item<std::int64_t>());
  reset();
}

void BlockLikelihoodImpl::reset() {
  const auto zero = [](at::IntArrayRef shape) { return at::zeros(shape, torch::kFloat64); };
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    auto& block = blocks_[i];
    block.data = register_metadata(fmt::format("data_{}", i), block.data.variable_data());  // of this module alone
    block.weights = register_metadata(fmt::format("weights_{}", i), block.weights.variable_data());
    if (block.fits_shift) {
      block.u = register_metadata(fmt::format("u_{}", i), block.u.variable_data());
      block.v = register_metadata(fmt::format("v_{}", i), block.v.variable_data());
      block.shift = register_parameter(fmt::format("shift_{}", i), zero({2}));
    }
    if (block.fits_amplitude) block.log_amplitude = register_parameter(fmt::format("log_amplitude_{}", i), zero({}));
    if (block.fits_weight_scale) block.log_weight_scale = register_parameter(fmt::format("log_weight_scale_{}", i), zero({}));
  }
}

Tensor BlockLikelihoodImpl::value_of(const Block& block, const Tensor& sky) const {
  auto model = block.nufft->forward(block.channels->images(sky));
  if (block.shift.defined()) {
    const auto shift = block.shift.to(torch::kFloat64) * coords().cell_size();
    model = model * displacement_phase(block.u, block.v, shift).to(model.scalar_type());
  }
  if (block.log_amplitude.defined()) model = model * block.log_amplitude.exp().to(sky.scalar_type());
  const auto residual = at::view_as_real(model - block.data.to(model.scalar_type()));
  const auto weighted = residual.square().sum({-1}) * block.weights.to(sky.scalar_type());
  const auto chi_squared = weighted.sum({-1}, false, torch::kFloat64).sum({-1});
  if (!block.log_weight_scale.defined()) return chi_squared;
  const auto log_scale = block.log_weight_scale.to(torch::kFloat64);
  return chi_squared * log_scale.exp() - 2.0 * static_cast<double>(block.data.numel()) * log_scale;
}

Tensor BlockLikelihoodImpl::chi_squared(const Tensor& sky) {
  losses::detail::check_sky_on(blocks_.front().data.device(), sky, nchan_, coords().npix(), "loose");
  auto sum = value_of(blocks_.front(), sky);
  for (std::size_t i = 1; i < blocks_.size(); ++i) sum = sum + value_of(blocks_[i], sky);
  return sum.to(sky.scalar_type());
}

std::map<std::string, std::string> BlockLikelihoodImpl::state_labels() const {
  auto labels = Likelihood::state_labels();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    labels[fmt::format("baselines_{}", i)] = blocks_[i].nufft->baselines().digest();
  }
  return labels;
}

std::int64_t BlockLikelihoodImpl::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& block : blocks_) {
    const auto of_shift = block.fits_shift ? block.u.nbytes() + block.v.nbytes() : 0;
    bytes += block.nufft->memory_bytes() + static_cast<std::int64_t>(of_shift + block.data.nbytes() + block.weights.nbytes());
  }
  return bytes;
}

Tensor BlockLikelihoodImpl::shift(std::int64_t block) const {
  const auto& shift = blocks_.at(static_cast<std::size_t>(block)).shift;
  return shift.defined() ? shift.detach().to(torch::kFloat64) * coords().cell_size() : at::zeros({2}, torch::kFloat64);
}

double BlockLikelihoodImpl::amplitude(std::int64_t block) const {
  const auto& logarithm = blocks_.at(static_cast<std::size_t>(block)).log_amplitude;
  return logarithm.defined() ? logarithm.detach().exp().item<double>() : 1;
}

double BlockLikelihoodImpl::weight_scale(std::int64_t block) const {
  const auto& logarithm = blocks_.at(static_cast<std::size_t>(block)).log_weight_scale;
  return logarithm.defined() ? logarithm.detach().exp().item<double>() : 1;
}

}  // namespace mpol
