#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>

#include <atomic>
#include <optional>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/read_ahead.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>
#include <mpol_cpp/likelihoods/staged_likelihood.h>

namespace mpol {

using losses::detail::SkyKind;

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
  normalizer_ = static_cast<double>(all.occupied_cells);
}

struct MiniBatchLikelihoodImpl::Batch {
  losses::detail::StagedLikelihood staged;
  double scale;

  Likelihood& likelihood() const { return *staged.likelihood; }
};

/// Makes the batches from a position on ready for images of one device and dtype, on a thread of its own.
class MiniBatchLikelihoodImpl::Stage {
 public:
  Stage(const MiniBatchLikelihoodImpl& owner, const SkyKind& kind)
      : owner_(owner),
        kind_(kind),
        next_(owner.position_),
        prepared_(owner.position_),
        batches_([this] { return make_next(); }, 1) {}

  const SkyKind& kind() const { return kind_; }
  Batch take() { return std::move(batches_.take().value()); }
  std::int64_t prepared() const { return prepared_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }

 private:
  std::optional<Batch> make_next() {
    const auto epoch = next_ / owner_.batches();
    if (epoch != epoch_) {
      samples_ = owner_.sampler_.epoch(epoch), epoch_ = epoch;
      std::size_t bytes = 0;
      for (const auto& samples : samples_) bytes += samples.nbytes();
      memory_bytes_ = static_cast<std::int64_t>(bytes);
    }
    auto batch = owner_.make_batch(samples_[static_cast<std::size_t>(next_ % owner_.batches())], kind_);
    prepared_ = ++next_;
    return batch;
  }

  const MiniBatchLikelihoodImpl& owner_;
  SkyKind kind_;
  std::int64_t next_, epoch_ = -1;
  std::vector<Tensor> samples_;  // of that epoch, for each of its batches
  std::atomic<std::int64_t> prepared_, memory_bytes_{0};
  ReadAhead<Batch> batches_;  // last: its thread uses the others
};

MiniBatchLikelihoodImpl::Ahead::Ahead() = default;
MiniBatchLikelihoodImpl::Ahead::Ahead(const Ahead&) {}
MiniBatchLikelihoodImpl::Ahead& MiniBatchLikelihoodImpl::Ahead::operator=(const Ahead& other) {
  if (&other != this) stage.reset();
  return *this;
}
MiniBatchLikelihoodImpl::Ahead::~Ahead() = default;

MiniBatchLikelihoodImpl::Batch MiniBatchLikelihoodImpl::make_batch(const Tensor& samples, const SkyKind& kind) const {
  return {losses::detail::stage_likelihood(coords(), visibilities_.select(samples), channels_, noise_, options_, kind),
          static_cast<double>(visibilities_.nvis()) / static_cast<double>(samples.size(0))};
}

MiniBatchLikelihoodImpl::Batch MiniBatchLikelihoodImpl::take_batch(const Tensor& sky) {
  const auto kind = SkyKind::of(sky);
  if (!ahead_.stage || !(ahead_.stage->kind() == kind)) {
    ahead_.stage.reset();  // its memory goes first
    ahead_.stage = std::make_unique<Stage>(*this, kind);
  }
  try {
    auto batch = ahead_.stage->take();
    take_over(batch.staged, kind.device);
    ++position_;
    return batch;
  } catch (...) {
    ahead_.stage.reset();  // the next call tries again
    throw;
  }
}

Tensor MiniBatchLikelihoodImpl::chi_squared(const Tensor& sky) {
  losses::detail::check_sky_shape(sky, channels_.nchan(), coords().npix());
  if (torch::GradMode::is_enabled() && sky.requires_grad()) {
    const auto batch = take_batch(sky);
    return batch.likelihood().chi_squared(sky) * batch.scale;
  }
  const auto kind = SkyKind::of(sky);
  const auto all = sampler_.epoch(0);
  std::size_t next = 0;
  ReadAhead<Batch> batches(
      [&]() -> std::optional<Batch> {
        if (next == all.size()) return std::nullopt;
        return make_batch(all[next++], kind);
      },
      1);
  Tensor sum;
  while (const auto batch = batches.take()) {
    take_over(batch->staged, kind.device);
    const auto value = batch->likelihood().chi_squared(sky).to(torch::kFloat64);
    sum = sum.defined() ? sum + value : value;
  }
  return sum.to(sky.scalar_type());
}

Tensor MiniBatchLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  losses::detail::check_sky_shape(sky, channels_.nchan(), coords().npix());
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  const auto batch = take_batch(sky);
  auto slope = at::empty_like(sky, at::MemoryFormat::Contiguous);
  const auto value = batch.likelihood().value_and_gradient(sky, slope, Accumulate::overwrite);
  if (accumulate == Accumulate::overwrite) gradient.zero_();
  gradient.add_(slope, batch.scale);
  return value * batch.scale;
}

std::int64_t MiniBatchLikelihoodImpl::prepared() const { return ahead_.stage ? ahead_.stage->prepared() : position_; }

std::int64_t MiniBatchLikelihoodImpl::memory_bytes() const {
  return visibilities_.memory_bytes() + sampler_.memory_bytes() + (ahead_.stage ? ahead_.stage->memory_bytes() : 0);
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
  if (taken == position_) return;
  ahead_.stage.reset();
  position_ = taken;
}

std::string MiniBatchLikelihoodImpl::name() const {
  const auto noise = noise_.kind == NoiseModel::Kind::gaussian ? std::string() : " with " + to_string(noise_.kind) + " noise";
  return "loose" + noise + " in batches";
}

}  // namespace mpol
