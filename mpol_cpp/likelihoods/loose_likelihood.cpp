#include <mpol_cpp/likelihoods/loose_likelihood.h>

#include <string>
#include <utility>

#include <ATen/ops/empty_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/forms/form_chi_squared.h>
#include <mpol_cpp/likelihoods/forms/loose_form.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {

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
  check(sky);
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  const auto image = sky.contiguous();
  if (gradient.is_contiguous()) return form_->evaluate(image, gradient, accumulate);
  auto slope = at::empty_like(image);
  const auto value = form_->evaluate(image, slope);
  if (accumulate == Accumulate::add) gradient.add_(slope);
  else gradient.copy_(slope);
  return value;
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

}  // namespace mpol
