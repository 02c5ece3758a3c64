#include <mpol_cpp/likelihoods/slab_likelihood.h>

#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/sky_checks.h>

namespace mpol {
namespace {

enum class Wish : std::int64_t { leave, evaluate };

Wish agree(const SlabOperator& normal, Wish wish) {
  auto word = at::full({1}, static_cast<std::int64_t>(wish), torch::kInt64);
  normal.slabs().ranks().broadcast(word);
  return static_cast<Wish>(word.item<std::int64_t>());
}

/// By all ranks together. @param sky  (nchan, npix, npix) float64, of the first rank  @param gradient  of the first rank
/// @return  chi^2
double evaluate(const SlabOperator& normal, const Tensor& sky, Tensor& gradient) {
  const auto& slabs = normal.slabs();
  const auto npix = slabs.npix();
  const auto slab = slabs.scatter(sky, at::zeros({normal.nchan(), slabs.rows().size(), npix}, torch::kFloat64));
  auto slope = at::empty_like(slab);
  std::vector<double> value = {normal.value_and_gradient(slab, slope)};
  slabs.ranks().sum(value);
  gradient = slabs.gather(slope);
  return value.front();
}

/// Value and gradient are known at once.
struct SlabChiSquared : torch::autograd::Function<SlabChiSquared> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& sky, SlabLikelihoodImpl* likelihood) {
    auto gradient = at::empty_like(sky, at::MemoryFormat::Contiguous);
    const auto value = likelihood->value_and_gradient(sky.detach(), gradient, Accumulate::overwrite);
    context->save_for_backward({gradient});
    return value.to(sky.scalar_type());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (torch::GradMode::is_enabled())
      throw ValueError("the likelihood of row slabs has no second derivative: take ExactLikelihood, or leave create_graph out");
    const auto saved = context->get_saved_variables();
    return {gradients[0].unsqueeze(-1).unsqueeze(-1).unsqueeze(-1) * saved[0], Tensor()};
  }
};

}  // namespace

SlabLikelihoodImpl::SlabLikelihoodImpl(std::shared_ptr<const SlabOperator> normal)
    : Likelihood(normal->coords()), normal_(std::move(normal)) {
  if (!normal_->slabs().ranks().is_first()) throw ValueError("the likelihood of row slabs is the first rank's: others serve");
}

Tensor SlabLikelihoodImpl::chi_squared(const Tensor& sky) { return SlabChiSquared::apply(sky, this); }

Tensor SlabLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto npix = coords().npix();
  losses::detail::check_sky_on(torch::kCPU, sky, normal_->nchan(), npix, "exact");
  losses::detail::check_gradient(sky, gradient);
  if (released_) throw ValueError("the other ranks of the row slabs were released: evaluate before release()");
  const torch::NoGradGuard no_gradient;
  const auto problems = sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 3));
  const auto images = sky.detach().to(torch::kFloat64).reshape({-1, normal_->nchan(), npix, npix});
  auto values = at::empty({images.size(0)}, torch::kFloat64);
  auto slopes = at::empty_like(images);
  for (std::int64_t problem = 0; problem < images.size(0); ++problem) {
    agree(*normal_, Wish::evaluate);
    Tensor slope;
    values[problem].fill_(evaluate(*normal_, images[problem], slope));
    slopes[problem].copy_(slope);
  }
  if (accumulate == Accumulate::add) gradient.add_(slopes.view(sky.sizes()));
  else gradient.copy_(slopes.view(sky.sizes()));
  return values.view(problems);
}

void SlabLikelihoodImpl::release() {
  if (!released_) agree(*normal_, Wish::leave);
  released_ = true;
}

void serve_slabs(const SlabOperator& normal) {
  const torch::NoGradGuard no_gradient;
  Tensor nothing;
  while (agree(normal, Wish::leave) == Wish::evaluate) evaluate(normal, {}, nothing);
}

}  // namespace mpol
