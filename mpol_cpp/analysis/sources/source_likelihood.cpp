#include <mpol_cpp/analysis/sources/source_likelihood.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {
namespace {

void check_sources(const std::vector<std::shared_ptr<VisibilityModel>>& sources) {
  if (sources.empty()) throw ValueError("0 sources: give at least 1, or take LooseLikelihood");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i]) throw ValueError(fmt::format("source {} is empty: make one", i));
    if (std::count(sources.begin(), sources.end(), sources[i]) > 1)
      throw ValueError(fmt::format("source {} is given twice: make another of its kind", i));
  }
}

/// Who owns a source as a module: the source itself.
std::shared_ptr<torch::nn::Module> module_of(const std::shared_ptr<VisibilityModel>& source) {
  return {source, &source->as_module()};
}

}  // namespace

SourceLikelihoodImpl::SourceLikelihoodImpl(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                           std::vector<std::shared_ptr<VisibilityModel>> sources, NufftOptions options)
    : Likelihood(coords), nchan_(channels.nchan()), sources_(std::move(sources)) {
  check_sources(sources_);
  auto samples = losses::detail::loose_samples(coords, visibilities, channels);
  const auto& selected = samples.visibilities;
  normalizer_ = static_cast<double>(samples.occupied_cells);
  nufft_ = Nufft(coords, selected.baselines(), selected.nchan(), options);
  channels_ = std::make_shared<losses::detail::ImageChannels>(std::move(samples.image_channels), nchan_);
  std::tie(u_, v_) = selected.baselines().stacked();
  data_ = selected.data().resolve_conj();
  weights_ = selected.weights();
  register_buffers();
  for (std::size_t i = 0; i < sources_.size(); ++i) register_module(fmt::format("source_{}", i), module_of(sources_[i]));
}

void SourceLikelihoodImpl::register_buffers() {
  // Tensors of its own, of the same values: a copy of the module that is moved or cast leaves this one alone.
  data_ = register_metadata("data", data_.variable_data());
  weights_ = register_metadata("weights", weights_.variable_data());
  u_ = register_metadata("u", u_.variable_data());
  v_ = register_metadata("v", v_.variable_data());
}

void SourceLikelihoodImpl::reset() {
  register_buffers();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const auto copy = sources_[i]->as_module().clone();
    sources_[i] = with_interface<VisibilityModel>(copy, "VisibilityModel");
    register_module(fmt::format("source_{}", i), copy);
  }
}

Tensor SourceLikelihoodImpl::source_visibilities() const { return sum_of_visibilities(sources_, u_, v_); }

Tensor SourceLikelihoodImpl::chi_squared(const Tensor& sky) {
  losses::detail::check_sky_on(data_.device(), sky, nchan_, coords().npix(), "loose");
  const auto of_image = nufft_->forward(channels_->images(sky));
  const auto type = of_image.scalar_type();
  const auto rest = source_visibilities() - data_;  // in the more precise of both dtypes
  const auto residual = at::view_as_real(of_image + rest.to(type));
  const auto weighted = residual.square().sum({-1}) * weights_.to(sky.scalar_type());
  return weighted.sum({-1}, false, torch::kFloat64).sum({-1}).to(sky.scalar_type());
}

std::map<std::string, std::string> SourceLikelihoodImpl::state_labels() const {
  auto labels = Likelihood::state_labels();
  labels["baselines"] = nufft_->baselines().digest();
  return labels;
}

std::int64_t SourceLikelihoodImpl::memory_bytes() const {
  return nufft_->memory_bytes() + static_cast<std::int64_t>(u_.nbytes() + v_.nbytes() + data_.nbytes() + weights_.nbytes());
}

}  // namespace mpol
