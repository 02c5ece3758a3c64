#include <mpol_cpp/likelihoods/block_likelihood.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/likelihoods/forms/chunk_size.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {
namespace {

using torch::autograd::variable_list;
using Range = std::pair<std::int64_t, std::int64_t>;  // of samples
/// What a piece of the samples adds, of the sky, a shift and the logarithm of an amplitude.
using Piece = std::function<Tensor(const variable_list& inputs)>;

/// A sum over pieces of the samples, with the memory of one piece at a time.
struct Pieces : torch::CustomClassHolder {
  using Use = std::function<void(const Piece& piece)>;
  /// Calls `use` for each piece, again for smaller ones where it runs out of memory.
  std::function<void(torch::Device device, const Use& use)> for_each;
  std::function<bool()> in_one_piece;

  /// Where there is one piece and a gradient will be asked for: what autograd needs of it, from the value to the gradient.
  bool keeps_graph = false;
  variable_list inputs;
  Tensor value;

  void drop_graph() {
    inputs.clear();
    value = Tensor();
  }
};

variable_list wanted(const variable_list& inputs) {
  variable_list own;
  for (const auto& input : inputs) {
    if (input.requires_grad()) own.push_back(input);
  }
  return own;
}

/// The same numbers as inputs of a graph of their own.
variable_list detached(const variable_list& inputs) {
  variable_list own;
  for (const auto& input : inputs) own.push_back(input.detach().set_requires_grad(input.requires_grad()));
  return own;
}

struct SumOfPieces : torch::autograd::Function<SumOfPieces> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& sky, const Tensor& shift,
                        const Tensor& log_amplitude, const c10::intrusive_ptr<Pieces>& pieces) {
    const variable_list inputs = {sky, shift, log_amplitude};
    context->save_for_backward(inputs);
    context->saved_data["pieces"] = c10::IValue::make_capsule(pieces);
    Tensor sum;
    pieces->for_each(sky.device(), [&](const Piece& piece) {
      pieces->drop_graph();
      Tensor value;
      if (pieces->keeps_graph && pieces->in_one_piece()) {
        const torch::AutoGradMode with_gradients(true);
        pieces->inputs = detached(inputs);
        pieces->value = piece(pieces->inputs);
        value = pieces->value.detach();
      } else {
        value = piece(inputs);
      }
      sum = sum.defined() ? sum + value : value;
    });
    return sum;
  }

  static variable_list backward(torch::autograd::AutogradContext* context, const variable_list& gradients) {
    const bool create_graph = torch::GradMode::is_enabled();
    const torch::AutoGradMode with_gradients(true);
    const auto pieces = c10::static_intrusive_pointer_cast<Pieces>(context->saved_data["pieces"].toCapsule());
    const auto saved = context->get_saved_variables();
    variable_list slopes;
    pieces->for_each(gradients[0].device(), [&](const Piece& piece) {
      auto inputs = std::exchange(pieces->inputs, {});
      auto value = std::exchange(pieces->value, Tensor());
      if (!value.defined() || create_graph || !pieces->in_one_piece()) {
        inputs = create_graph ? saved : detached(saved);
        value = piece(inputs);
      }
      const auto own = torch::autograd::grad({value}, wanted(inputs), {gradients[0]}, create_graph, create_graph,
                                             /*allow_unused=*/true);
      if (slopes.empty()) slopes.resize(own.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (own[i].defined()) slopes[i] = slopes[i].defined() ? slopes[i] + own[i] : own[i];
      }
    });
    variable_list result(4);
    for (std::size_t i = 0, next = 0; i < saved.size(); ++i) {
      if (saved[i].requires_grad()) result[i] = slopes[next++];
    }
    return result;
  }
};

}  // namespace

/// What the parameters of a block alter, and where it is.
struct BlockLikelihoodImpl::Block {
  Baselines baselines;
  std::shared_ptr<const losses::detail::ImageChannels> channels;
  Tensor u, v, data, weights;  // u, v where a shift is fitted
  bool fits_shift, fits_amplitude, fits_weight_scale;
  Tensor shift, log_amplitude, log_weight_scale;
  std::map<Range, Nufft> transforms;  // of its chunks, where they are kept

  std::int64_t nvis() const { return baselines.nvis(); }
  std::int64_t memory_bytes() const {
    std::size_t bytes = data.nbytes() + weights.nbytes() + (fits_shift ? u.nbytes() + v.nbytes() : 0);
    for (const auto& [range, transform] : transforms) bytes += static_cast<std::size_t>(transform->memory_bytes());
    return static_cast<std::int64_t>(bytes);
  }

  Nufft transform_of(Range range, const GridCoords& coords, const NufftOptions& options, bool kept) {
    const auto found = transforms.find(range);
    if (found != transforms.end()) return found->second;
    const bool whole = range == Range(0, nvis());
    Nufft made(coords, whole ? baselines : baselines.select(at::arange(range.first, range.second, torch::kInt64)), data.size(0),
               options);
    if (kept) transforms.emplace(range, made);
    return made;
  }

  /// chi^2 of a chunk with a shift and an amplitude, where the block fits them.
  Tensor chi_squared(Range range, const Nufft& transform, double cell_size, const variable_list& inputs) const {
    const auto &sky = inputs[0], &own_shift = inputs[1], &own_log_amplitude = inputs[2];
    const auto own = [&](const Tensor& values) {
      return values.narrow(-1, range.first, range.second - range.first).to(sky.device());
    };
    auto model = transform->forward(channels->images(sky));
    if (fits_shift) {
      const auto arcsec = own_shift.to(torch::kFloat64) * cell_size;
      model = model * displacement_phase(own(u), own(v), arcsec).to(model.scalar_type());
    }
    if (fits_amplitude) model = model * own_log_amplitude.exp().to(sky.scalar_type());
    const auto residual = at::view_as_real(model - own(data).to(model.scalar_type()));
    const auto weighted = residual.square().sum({-1}) * own(weights).to(sky.scalar_type());
    return weighted.sum({-1}, false, torch::kFloat64).sum({-1});
  }
};

/// How the samples of all blocks are divided.
struct BlockLikelihoodImpl::Chunks {
  losses::detail::ChunkSize size;
  bool keeps_transforms = true;
};

BlockLikelihoodImpl::BlockLikelihoodImpl(const GridCoords& coords, const std::vector<DataBlock>& blocks,
                                         BlockLikelihoodOptions options)
    : Likelihood(coords), options_(std::move(options)) {
  if (blocks.empty()) throw ValueError("0 blocks of data: give at least 1");
  nchan_ = blocks.front().channels.nchan();
  blocks_.reserve(blocks.size());
  std::int64_t longest = 0;
  auto occupied = at::zeros({nchan_, coords.npix(), coords.npix()}, torch::kBool);
  for (const auto& block : blocks) {
    if (block.channels.nchan() != nchan_) {
      throw ShapeError(fmt::format("a block of {} image channels beside one of {}", block.channels.nchan(), nchan_));
    }
    auto samples = losses::detail::loose_samples(coords, block.visibilities, block.channels);
    losses::detail::mark_occupied(coords, samples.visibilities.baselines(), samples.image_channels, occupied);
    auto [u, v] = block.fits_shift ? samples.visibilities.baselines().stacked() : std::pair<Tensor, Tensor>();
    samples_ += samples.visibilities.data().numel();
    longest = std::max(longest, samples.visibilities.nvis());
    blocks_.push_back(
        std::make_shared<Block>(Block{samples.visibilities.baselines(),
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
                                      {},
                                      {}}));
  }
  chunks_ = std::make_shared<Chunks>(Chunks{{longest, options_.chunk(), options_.memory_budget()}});
  normalizer_ = static_cast<double>(occupied.sum().item<std::int64_t>());
  reset();
}

void BlockLikelihoodImpl::reset() {
  chunks_ = std::make_shared<Chunks>(*chunks_);  // of this module alone, as all that follows
  const auto zero = [](at::IntArrayRef shape) { return at::zeros(shape, torch::kFloat64); };
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i] = std::make_shared<Block>(*blocks_[i]);
    auto& block = *blocks_[i];
    block.transforms.clear();
    if (!options_.on_host()) {
      block.data = register_metadata(fmt::format("data_{}", i), block.data.variable_data());
      block.weights = register_metadata(fmt::format("weights_{}", i), block.weights.variable_data());
      if (block.fits_shift) {
        block.u = register_metadata(fmt::format("u_{}", i), block.u.variable_data());
        block.v = register_metadata(fmt::format("v_{}", i), block.v.variable_data());
      }
    }
    if (block.fits_shift) block.shift = register_parameter(fmt::format("shift_{}", i), zero({2}));
    if (block.fits_amplitude) block.log_amplitude = register_parameter(fmt::format("log_amplitude_{}", i), zero({}));
    if (block.fits_weight_scale) block.log_weight_scale = register_parameter(fmt::format("log_weight_scale_{}", i), zero({}));
  }
}

void BlockLikelihoodImpl::choose_chunk(const Tensor& sky) {
  const auto size = static_cast<double>(sky.element_size()),
             problems = static_cast<double>(sky.numel()) / static_cast<double>(nchan_ * sky.size(-1) * sky.size(-2));
  losses::detail::ChunkSize::Needs needs;
  for (const auto& block : blocks_) {
    // Sorted points; models, residuals and what autograd keeps of them, their slopes; phases in float64, and their slopes.
    const double sorted = 7 * size + 16, working = problems * 32 * size + (block->fits_shift ? problems * 4 * size + 96 : 0);
    const double each = static_cast<double>(block->data.size(0)) * (sorted + working);
    needs.whole += each * static_cast<double>(block->nvis());
    needs.per_sample = std::max(needs.per_sample, each);
  }
  if (chunks_->size.choose(sky.device(), needs)) chunks_->keeps_transforms = false;
}

Tensor BlockLikelihoodImpl::value_of(const std::shared_ptr<Block>& block, const Tensor& sky) const {
  const auto none = at::zeros({}, sky.options());
  const auto shift = block->fits_shift ? block->shift : none, log_amplitude = block->fits_amplitude ? block->log_amplitude : none;
  auto pieces = c10::make_intrusive<Pieces>();
  pieces->keeps_graph = torch::GradMode::is_enabled() && !wanted({sky, shift, log_amplitude}).empty();
  pieces->in_one_piece = [chunks = chunks_] { return chunks->size.is_whole(); };
  pieces->for_each = [block, chunks = chunks_, grid = coords(), options = options_.transform()](torch::Device device,
                                                                                                const Pieces::Use& use) {
    std::int64_t begin = 0;  // of what is not yet done; after running out of memory it goes on there
    const auto work = [&] {
      while (begin < block->nvis()) {
        const Range range(begin, std::min(block->nvis(), begin + chunks->size.samples()));
        const auto transform = block->transform_of(range, grid, options, chunks->keeps_transforms);
        use([&](const variable_list& inputs) { return block->chi_squared(range, transform, grid.cell_size(), inputs); });
        begin = range.second;
      }
    };
    chunks->size.try_out(device, work, [&] {
      chunks->keeps_transforms = false;
      block->transforms.clear();
    });
  };
  const auto chi_squared = SumOfPieces::apply(sky, shift, log_amplitude, pieces);
  if (!block->log_weight_scale.defined()) return chi_squared;
  const auto log_scale = block->log_weight_scale.to(torch::kFloat64);
  return chi_squared * log_scale.exp() - 2.0 * static_cast<double>(block->data.numel()) * log_scale;
}

Tensor BlockLikelihoodImpl::chi_squared(const Tensor& sky) {
  const auto& first = blocks_.front()->data;
  losses::detail::check_sky_on(options_.on_host() ? sky.device() : first.device(), sky, nchan_, coords().npix(), "loose");
  choose_chunk(sky);
  Tensor sum;
  for (const auto& block : blocks_) {
    if (!chunks_->keeps_transforms) block->transforms.clear();
    const auto value = value_of(block, sky);
    sum = sum.defined() ? sum + value : value;
  }
  return sum.to(sky.scalar_type());
}

std::int64_t BlockLikelihoodImpl::chunk() const { return chunks_->size.samples(); }

NamedTensors BlockLikelihoodImpl::working_state() const { return chunks_->size.state(); }

void BlockLikelihoodImpl::load_working_state(const NamedTensors& state) {
  for (const auto& block : blocks_) block->transforms.clear();
  chunks_->size.load(state);
}

std::map<std::string, std::string> BlockLikelihoodImpl::state_labels() const {
  auto labels = Likelihood::state_labels();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    labels[fmt::format("baselines_{}", i)] = blocks_[i]->baselines.digest();
  }
  return labels;
}

std::int64_t BlockLikelihoodImpl::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& block : blocks_) bytes += block->memory_bytes();
  return bytes;
}

Tensor BlockLikelihoodImpl::shift(std::int64_t block) const {
  const auto& shift = blocks_.at(static_cast<std::size_t>(block))->shift;
  return shift.defined() ? shift.detach().to(torch::kFloat64) * coords().cell_size() : at::zeros({2}, torch::kFloat64);
}

double BlockLikelihoodImpl::amplitude(std::int64_t block) const {
  const auto& logarithm = blocks_.at(static_cast<std::size_t>(block))->log_amplitude;
  return logarithm.defined() ? logarithm.detach().exp().item<double>() : 1;
}

double BlockLikelihoodImpl::weight_scale(std::int64_t block) const {
  const auto& logarithm = blocks_.at(static_cast<std::size_t>(block))->log_weight_scale;
  return logarithm.defined() ? logarithm.detach().exp().item<double>() : 1;
}

}  // namespace mpol
