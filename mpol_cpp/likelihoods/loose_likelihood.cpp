#include <mpol_cpp/likelihoods/loose_likelihood.h>

#include <algorithm>
#include <string>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/chunked_likelihood.h>
#include <mpol_cpp/likelihoods/forms/form_chi_squared.h>
#include <mpol_cpp/likelihoods/forms/loose_form.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>
#include <mpol_cpp/likelihoods/likelihood_kind.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>

namespace mpol {
namespace {

LikelihoodMemory loose_memory(const LikelihoodSizes& sizes) {
  const auto npix = static_cast<double>(sizes.npix), nchan = static_cast<double>(sizes.nchan);
  const auto size = static_cast<double>(c10::elementSize(sizes.dtype)),
             samples = static_cast<double>(sizes.samples_at_once > 0 ? std::min(sizes.samples_at_once, sizes.visibilities)
                                                                     : sizes.visibilities);
  // For each channel with points of its own two grids of twice the image's size. Of each sample its place in tiles and, with
  // it, data and weight, or with other noise the model and what has another dtype than the fit; while points are sorted,
  // records of them.
  const bool noise = !sizes.gaussian;
  const double grids = 12 * size * npix * npix * nchan, places = 2 * size + 6, records = 2 * size + 8;
  const double converted = sizes.data_dtype == sizes.dtype ? 0 : 3 * size;
  const double values = noise ? 2 * size + converted : 3 * size;
  const double ending = std::max(detail::residual_bytes(sizes), noise ? detail::prediction_bytes(sizes) : 0);
  // Tiles of many points are summed in parts, 2 bytes a point.
  return {grids + samples * (places + values + 2), grids + samples * (places + records + 2), ending, grids};
}

template <typename Holder>
std::shared_ptr<Likelihood> on_device(Holder likelihood, torch::Device device) {
  likelihood->to(device);
  return likelihood.ptr();
}

/// All samples, batches or chunks of them, for any noise.
std::shared_ptr<Likelihood> make_loose(const LikelihoodSource& source) {
  const auto& visibilities = source.visibilities;
  const auto& channels = source.channels;
  const auto& coords = source.coords();
  if (source.batches)
    return on_device(MiniBatchLikelihood(coords, visibilities, channels, *source.batches, source.noise), source.device);
  if (source.chunks) {
    auto chunks = *source.chunks;
    return on_device(ChunkedLikelihood(coords, visibilities, channels, chunks.noise(source.noise)), source.device);
  }
  if (source.noise.kind != NoiseModel::Kind::gaussian)
    return on_device(NoiseLikelihood(coords, visibilities, channels, source.noise), source.device);
  return on_device(LooseLikelihood(coords, visibilities, channels), source.device);
}

}  // namespace

LooseLikelihoodImpl::LooseLikelihoodImpl(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                         NufftOptions options)
    : Likelihood(coords), nchan_(channels.nchan()) {
  auto samples = losses::detail::loose_samples(coords, visibilities, channels);
  const auto& selected = samples.visibilities;
  normalizer_ = static_cast<double>(samples.occupied_cells);
  data_ = selected.data().resolve_conj();
  weights_ = selected.weights();
  const auto image_channels = std::make_shared<losses::detail::ImageChannels>(std::move(samples.image_channels), nchan_);
  form_ = std::make_shared<LooseForm>(Nufft(coords, selected.baselines(), selected.nchan(), options), image_channels, data_,
                                      weights_);
  reset();
}

void LooseLikelihoodImpl::reset() {
  // Tensors of its own, of the same values: a copy of the module that is moved or cast leaves this one alone.
  data_ = register_metadata("data", data_.variable_data());
  weights_ = register_metadata("weights", weights_.variable_data());
  form_ = form_->of(data_, weights_);
}

void LooseLikelihoodImpl::check(const Tensor& sky) const {
  losses::detail::check_sky_on(form_->device(), sky, nchan_, coords().npix(), "loose");
}

Tensor LooseLikelihoodImpl::chi_squared(const Tensor& sky) {
  check(sky);
  return losses::detail::FormChiSquared<LooseForm>::apply(sky, form_);
}

Tensor LooseLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  return LooseLikelihoodImpl::channel_values_and_gradient(sky, gradient, accumulate).sum(-1);
}

Tensor LooseLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  check(sky);
  return losses::detail::form_values_and_gradient(*form_, sky, gradient, accumulate);
}

Tensor LooseLikelihoodImpl::model_visibilities(const Tensor& sky) const {
  check(sky);
  return form_->model(sky);
}

void LooseLikelihoodImpl::prepare(torch::Dtype dtype) { form_->prepare(dtype); }

void LooseLikelihoodImpl::keep_for(c10::Stream stream) const { form_->keep_for(stream); }

std::int64_t LooseLikelihoodImpl::memory_bytes() const { return form_->memory_bytes(); }

std::map<std::string, std::string> LooseLikelihoodImpl::state_labels() const {
  auto labels = Likelihood::state_labels();
  labels["baselines"] = form_->baselines().digest();
  return labels;
}

LikelihoodKind LooseLikelihoodImpl::kind() {
  return {.name = "loose",
          .help = "of the visibilities by nonuniform transforms, whose cost grows with their number",
          .goes_through_samples = true,
          .memory = loose_memory,
          .make = make_loose};
}

}  // namespace mpol
