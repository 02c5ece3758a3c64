#include <mpol_cpp/likelihoods/block_likelihood.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {
namespace {

/// A function of three tensors whose intermediate results are not kept: its gradient computes them again.
struct Recomputed : torch::autograd::Function<Recomputed> {
  using Own = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
  struct Held : torch::CustomClassHolder {
    explicit Held(Own held) : function(std::move(held)) {}
    Own function;
  };

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& y, const Tensor& z,
                        const Own& function) {
    context->save_for_backward({x, y, z});
    context->saved_data["function"] = c10::IValue::make_capsule(c10::make_intrusive<Held>(function));
    return function(x, y, z);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      throw ValueError("blocks in chunks have no second derivative: leave samples_at_once out, or create_graph");
    }
    const torch::AutoGradMode with_gradients(true);
    const auto held = c10::static_intrusive_pointer_cast<Held>(context->saved_data["function"].toCapsule());
    torch::autograd::variable_list inputs, wanted;
    std::vector<std::size_t> places;
    for (const auto& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach());
      if (!saved.requires_grad()) continue;
      places.push_back(inputs.size() - 1);
      wanted.push_back(inputs.back().set_requires_grad(true));
    }
    const auto slopes = torch::autograd::grad({held->function(inputs[0], inputs[1], inputs[2])}, wanted, {gradients[0]},
                                              /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
    torch::autograd::variable_list result(4);
    for (std::size_t i = 0; i < places.size(); ++i) result[places[i]] = slopes[i];
    return result;
  }
};

}  // namespace

BlockLikelihoodImpl::BlockLikelihoodImpl(const GridCoords& coords, const std::vector<DataBlock>& blocks, NufftOptions options,
                                         std::int64_t samples_at_once)
    : Likelihood(coords) {
  if (blocks.empty()) throw ValueError("0 blocks of data: give at least 1");
  if (samples_at_once < 0) throw ValueError(fmt::format("samples_at_once is {}; it must be >= 0", samples_at_once));
  nchan_ = blocks.front().channels.nchan();
  blocks_.reserve(blocks.size());
  auto occupied = at::zeros({nchan_, coords.npix(), coords.npix()}, torch::kBool);
  for (const auto& block : blocks) {
    if (block.channels.nchan() != nchan_) {
      throw ShapeError(fmt::format("a block of {} image channels beside one of {}", block.channels.nchan(), nchan_));
    }
    auto samples = losses::detail::loose_samples(coords, block.visibilities, block.channels);
    losses::detail::mark_occupied(coords, samples.visibilities.baselines(), samples.image_channels, occupied);
    auto [u, v] = block.fits_shift ? samples.visibilities.baselines().stacked() : std::pair<Tensor, Tensor>();
    samples_ += samples.visibilities.data().numel();
    const auto& baselines = samples.visibilities.baselines();
    std::vector<Chunk> chunks;
    const auto nvis = baselines.nvis(), length = samples_at_once == 0 ? nvis : std::min(samples_at_once, nvis);
    for (std::int64_t begin = 0; begin < nvis; begin += length) {
      const auto end = std::min(nvis, begin + length);
      const auto own = length == nvis ? baselines : baselines.select(at::arange(begin, end, torch::kInt64));
      chunks.push_back({begin, Nufft(coords, own, samples.visibilities.nchan(), options)});
    }
    blocks_.push_back({baselines,
                       std::move(chunks),
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
  normalizer_ = static_cast<double>(occupied.sum().item<std::int64_t>());
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

Tensor BlockLikelihoodImpl::chi_squared_of(const Block& block, const Chunk& chunk, const Tensor& sky, const Tensor& shift,
                                           const Tensor& log_amplitude) const {
  const auto count = chunk.nufft->baselines().nvis();
  const auto own = [&](const Tensor& values) { return values.narrow(-1, chunk.begin, count); };
  auto model = chunk.nufft->forward(block.channels->images(sky));
  if (block.fits_shift) {
    const auto arcsec = shift.to(torch::kFloat64) * coords().cell_size();
    model = model * displacement_phase(own(block.u), own(block.v), arcsec).to(model.scalar_type());
  }
  if (block.fits_amplitude) model = model * log_amplitude.exp().to(sky.scalar_type());
  const auto residual = at::view_as_real(model - own(block.data).to(model.scalar_type()));
  const auto weighted = residual.square().sum({-1}) * own(block.weights).to(sky.scalar_type());
  return weighted.sum({-1}, false, torch::kFloat64).sum({-1});
}

Tensor BlockLikelihoodImpl::value_of(const Block& block, const Tensor& sky) const {
  const auto none = at::zeros({}, sky.options());
  const auto shift = block.fits_shift ? block.shift : none, log_amplitude = block.fits_amplitude ? block.log_amplitude : none;
  Tensor chi_squared;
  for (const auto& chunk : block.chunks) {
    const auto part = [this, &block, &chunk](const Tensor& image, const Tensor& own_shift, const Tensor& own_amplitude) {
      return chi_squared_of(block, chunk, image, own_shift, own_amplitude);
    };
    const auto value = block.chunks.size() == 1 ? part(sky, shift, log_amplitude)
                                                : Recomputed::apply(sky, shift, log_amplitude, Recomputed::Own(part));
    chi_squared = chi_squared.defined() ? chi_squared + value : value;
  }
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
    labels[fmt::format("baselines_{}", i)] = blocks_[i].baselines.digest();
  }
  return labels;
}

std::int64_t BlockLikelihoodImpl::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& block : blocks_) {
    const auto of_shift = block.fits_shift ? block.u.nbytes() + block.v.nbytes() : 0;
    for (const auto& chunk : block.chunks) bytes += chunk.nufft->memory_bytes();
    bytes += static_cast<std::int64_t>(of_shift + block.data.nbytes() + block.weights.nbytes());
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
