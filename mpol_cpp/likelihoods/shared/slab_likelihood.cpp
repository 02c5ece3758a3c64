#include <mpol_cpp/likelihoods/shared/slab_likelihood.h>

#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/known_gradient.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {
namespace {

/// By all ranks together. @param sky  (nchan, npix, npix) float64, of the first rank  @param gradient  of the first rank
/// @return  chi^2 of each channel
std::vector<double> evaluate(const SlabOperator& normal, const Tensor& sky, Tensor& gradient) {
  const auto& slabs = normal.slabs();
  const auto npix = slabs.npix();
  const auto slab = slabs.scatter(sky, at::zeros({normal.nchan(), slabs.rows().size(), npix}, torch::kFloat64));
  auto slope = at::empty_like(slab);
  auto values = normal.channel_values_and_gradient(slab, slope);
  slabs.ranks().sum(values);
  gradient = slabs.gather(slope);
  return values;
}

}  // namespace

SlabLikelihoodImpl::SlabLikelihoodImpl(std::shared_ptr<const SlabOperator> normal)
    : Likelihood(normal->coords()), normal_(std::move(normal)), service_(normal_->slabs().ranks()) {
  if (!normal_->slabs().ranks().is_first()) throw ValueError("the likelihood of row slabs is the first rank's: others serve");
}

Tensor SlabLikelihoodImpl::chi_squared(const Tensor& sky) {
  return losses::detail::chi_squared_with_gradient(sky, *this, "the likelihood of row slabs");
}

Tensor SlabLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  return SlabLikelihoodImpl::channel_values_and_gradient(sky, gradient, accumulate).sum(-1);
}

Tensor SlabLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto npix = coords().npix();
  losses::detail::check_sky_on(torch::kCPU, sky, normal_->nchan(), npix, "exact");
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_gradient;
  const auto images = sky.detach().to(torch::kFloat64).reshape({-1, normal_->nchan(), npix, npix});
  std::vector<Tensor> values;
  auto slopes = at::empty_like(images);
  for (std::int64_t problem = 0; problem < images.size(0); ++problem) {
    service_.ask();
    Tensor slope;
    values.push_back(at::tensor(evaluate(*normal_, images[problem], slope), torch::kFloat64));
    slopes[problem].copy_(slope);
  }
  if (accumulate == Accumulate::add) gradient.add_(slopes.view(sky.sizes()));
  else gradient.copy_(slopes.view(sky.sizes()));
  return at::cat(values).view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)));
}

void serve_slabs(const SlabOperator& normal) {
  const torch::NoGradGuard no_gradient;
  Tensor nothing;
  RankService(normal.slabs().ranks()).serve([&](const RankService::Words&) { evaluate(normal, {}, nothing); });
}

}  // namespace mpol
