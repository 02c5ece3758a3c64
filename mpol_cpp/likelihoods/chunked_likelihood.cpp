#include <mpol_cpp/likelihoods/chunked_likelihood.h>

#include <algorithm>
#include <optional>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/read_ahead.h>
#include <mpol_cpp/likelihoods/known_gradient.h>
#include <mpol_cpp/likelihoods/forms/chunk_size.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>
#include <mpol_cpp/likelihoods/staged_likelihood.h>
#include <mpol_cpp/serialize/array_room.h>

namespace mpol {
namespace {

/// The value where there are no samples. @param dimensions  of the sky, at its end, that it sums over
Tensor no_samples(const Tensor& sky, std::int64_t dimensions) {
  return at::zeros(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - dimensions)), sky.options().dtype(torch::kFloat64));
}

/// The same visibilities with each array put where `put` puts it.
template <typename Put>
Visibilities with_arrays(const Visibilities& all, const Put& put) {
  const auto& baselines = all.baselines();
  auto own = baselines.frequencies().defined()
                 ? Baselines::in_metres(put(baselines.u()), put(baselines.v()), baselines.frequencies())
                 : Baselines::in_lambda(put(baselines.u()), put(baselines.v()));
  Visibilities placed(std::move(own), put(all.data()), put(all.weights()));
  if (all.frequencies().defined()) placed.set_frequencies(all.frequencies());
  placed.set_observation(all.observation());
  return placed;
}

Visibilities on_disk(const Visibilities& all, const std::filesystem::path& folder) {
  const auto bytes = static_cast<double>(all.memory_bytes());
  const auto room = ArrayRoom::on_disk(folder.empty() ? folder_for_arrays(bytes) : folder);
  return with_arrays(all, [&](const Tensor& array) {
    if (is_on_disk(array)) return array;
    auto placed = room.empty(array.sizes(), array.scalar_type());
    placed.copy_(array);
    return placed;
  });
}

Visibilities in_memory(const Visibilities& all) {
  return with_arrays(all, [](const Tensor& array) {
    return is_on_disk(array) ? array.clone(at::MemoryFormat::Contiguous) : array.to(torch::kCPU);
  });
}

}  // namespace

ChunkedLikelihoodImpl::ChunkedLikelihoodImpl(const GridCoords& coords, Visibilities visibilities, ChannelMap channels,
                                             ChunkedLikelihoodOptions options)
    : Likelihood(coords),
      visibilities_(std::move(visibilities)),
      channels_(std::move(channels)),
      options_(std::move(options)),
      residency_(options_.residency()),
      chunk_(std::make_shared<losses::detail::ChunkSize>(visibilities_.nvis(), options_.chunk(), options_.memory_budget())) {
  {
    const auto all = losses::detail::loose_samples(coords, visibilities_, channels_);
    samples_ = all.visibilities.data().numel();
    normalizer_ = static_cast<double>(all.occupied_cells);
  }
  set_residency(residency_);
}

void ChunkedLikelihoodImpl::reset() { chunk_ = std::make_shared<losses::detail::ChunkSize>(*chunk_); }

std::int64_t ChunkedLikelihoodImpl::chunk() const { return chunk_->samples(); }

double ChunkedLikelihoodImpl::bytes_per_sample(const Tensor& sky) const {
  const auto size = static_cast<double>(sky.element_size()),
             problems = static_cast<double>(sky.numel()) / static_cast<double>(channels_.nchan() * sky.size(-1) * sky.size(-2));
  const bool noise = options_.noise().kind != NoiseModel::Kind::gaussian;
  // Its place, data and weight in both orders, records while it is sorted; with other noise model, residual and their like.
  const double sorted = 7 * size + 16, chosen = 40, working = noise ? size * (3 + 4 * problems) : 0;
  return static_cast<double>(visibilities_.nchan()) * (sorted + chosen + working);
}

void ChunkedLikelihoodImpl::choose_chunk(const Tensor& sky) {
  const double each = bytes_per_sample(sky);
  // Two chunks are there at a time, and what the second one is made from.
  const bool streams =
      chunk_->choose(sky.device(), {.whole = each * static_cast<double>(visibilities_.nvis()), .per_sample = 3 * each});
  if (streams && residency_ == DataResidency::device) residency_ = DataResidency::host;
}

ChunkedLikelihoodImpl::Range ChunkedLikelihoodImpl::range_from(std::int64_t begin) const {
  return {begin, std::min(begin + chunk(), visibilities_.nvis())};
}

ChunkedLikelihoodImpl::Staged ChunkedLikelihoodImpl::stage(Range range, const SkyKind& kind) const {
  auto own = visibilities_.select(at::arange(range.first, range.second, torch::kInt64));
  return losses::detail::stage_likelihood(coords(), std::move(own), channels_, options_.noise(), options_.transform(), kind);
}

void ChunkedLikelihoodImpl::use_kept_parts(const SkyKind& kind, std::int64_t& begin, const Use& use) {
  if (!kept_.kind || !(*kept_.kind == kind)) {
    kept_.parts.clear();
    kept_.kind = std::make_shared<const SkyKind>(kind);
  }
  while (begin < visibilities_.nvis()) {
    const auto range = range_from(begin);
    auto& part = kept_.parts[range];
    if (!part) {
      part = std::make_shared<const Staged>(stage(range, kind));
      losses::detail::take_over(*part, kind.device);
    }
    use(*part->likelihood);
    begin = range.second;
  }
}

void ChunkedLikelihoodImpl::use_streamed_parts(const SkyKind& kind, std::int64_t& begin, const Use& use) const {
  auto next = begin;
  ReadAhead<Staged> parts(
      [&, next]() mutable -> std::optional<Staged> {
        if (next == visibilities_.nvis()) return std::nullopt;
        const auto range = range_from(next);
        next = range.second;
        return stage(range, kind);
      },
      1);
  while (const auto part = parts.take()) {
    losses::detail::take_over(*part, kind.device);
    use(*part->likelihood);
    begin = range_from(begin).second;
  }
}

void ChunkedLikelihoodImpl::for_each_part(const SkyKind& kind, const Use& use) {
  std::int64_t begin = 0;  // of what is not yet done; after running out of memory it goes on there
  const auto work = [&] {
    if (residency_ == DataResidency::device) use_kept_parts(kind, begin, use);
    else use_streamed_parts(kind, begin, use);
  };
  chunk_->try_out(kind.device, work, [this] {
    kept_.parts.clear();
    if (residency_ == DataResidency::device) residency_ = DataResidency::host;
  });
}

Tensor ChunkedLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto sum = sum_of_parts(sky, gradient, accumulate, [&](Likelihood& part, const Tensor& image, Tensor& slope) {
    return part.value_and_gradient(image, slope, Accumulate::overwrite);
  });
  return sum.defined() ? sum : no_samples(sky, 3);
}

Tensor ChunkedLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto sum = sum_of_parts(sky, gradient, accumulate, [&](Likelihood& part, const Tensor& image, Tensor& slope) {
    return part.channel_values_and_gradient(image, slope, Accumulate::overwrite);
  });
  return sum.defined() ? sum : no_samples(sky, 2);
}

Tensor ChunkedLikelihoodImpl::sum_of_parts(const Tensor& sky, Tensor& gradient, Accumulate accumulate, const Evaluate& evaluate) {
  losses::detail::check_sky_shape(sky, channels_.nchan(), coords().npix());
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  choose_chunk(sky);
  if (accumulate == Accumulate::overwrite) gradient.zero_();
  const auto image = sky.contiguous();
  auto slope = at::empty_like(image);
  Tensor sum;
  for_each_part(SkyKind::of(sky), [&](Likelihood& part) {
    const auto value = evaluate(part, image, slope);
    gradient.add_(slope);  // nothing is added before all of the chunk is known
    if (sum.defined()) sum.add_(value);
    else sum = value.clone();
  });
  return sum;
}

Tensor ChunkedLikelihoodImpl::chi_squared(const Tensor& sky) {
  return losses::detail::chi_squared_with_gradient(sky, *this, "the likelihood in chunks");
}

std::int64_t ChunkedLikelihoodImpl::memory_bytes() const {
  auto bytes = residency_ == DataResidency::disk ? 0 : visibilities_.memory_bytes();
  for (const auto& [range, part] : kept_.parts) bytes += part ? part->likelihood->memory_bytes() : 0;
  return bytes;
}

void ChunkedLikelihoodImpl::set_residency(DataResidency residency) {
  residency_ = residency;
  if (residency != DataResidency::device) kept_.parts.clear();
  if (residency == DataResidency::disk) visibilities_ = on_disk(visibilities_, options_.folder());
  else if (is_on_disk(visibilities_.data()) || !visibilities_.data().is_cpu()) visibilities_ = in_memory(visibilities_);
}

NamedTensors ChunkedLikelihoodImpl::working_state() const { return chunk_->state(); }

void ChunkedLikelihoodImpl::load_working_state(const NamedTensors& state) {
  const auto before = chunk();
  chunk_->load(state);
  if (chunk() != before) kept_.parts.clear();
}

std::string ChunkedLikelihoodImpl::name() const {
  const auto& noise = options_.noise();
  const auto words = noise.kind == NoiseModel::Kind::gaussian ? std::string() : " with " + to_string(noise.kind) + " noise";
  return "loose" + words + " in chunks";
}

}  // namespace mpol
