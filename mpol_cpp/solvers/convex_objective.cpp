#include <mpol_cpp/solvers/convex_objective.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/proximal/image_vectors.h>

namespace mpol {
namespace {

constexpr int power_steps = 30;
constexpr double margin_of_power = 1.02;  // power steps find less than the largest eigenvalue

/// Those whose value is a quadratic form of the image; sparsity is linear where no pixel is negative.
bool is_quadratic(TermKind kind) { return kind == TermKind::tsv || kind == TermKind::edge_clamp || kind == TermKind::psd; }
bool is_known(TermKind kind) { return is_quadratic(kind) || kind == TermKind::sparsity || kind == TermKind::tv_image; }

constexpr double largest_epsilon = 1e-8;  // Jy^2/arcsec^4: the map takes total variation without it

std::vector<double> values_of(const Tensor& tensor) {
  const auto own = tensor.to(torch::kCPU, torch::kFloat64).contiguous();
  return {own.const_data_ptr<double>(), own.const_data_ptr<double>() + own.numel()};
}

Tensor norms(const Tensor& images) { return images.square().sum({-2, -1}, /*keepdim=*/true, torch::kFloat64).sqrt(); }

}  // namespace

std::string ConvexObjective::obstacle(ImageModel& model, const Objective& objective) {
  const auto* net = dynamic_cast<const GriddedNetImpl*>(&model);
  if (net == nullptr) return "the model is not a GriddedNet";
  const auto& mapping = net->options().pixel_mapping();
  if (!mapping.name.starts_with(nonnegative_mapping().name)) {
    return fmt::format("the pixel mapping is {}: the image must be a convex function of its base pixels (nonnegative_mapping())",
                       mapping.name);
  }
  auto& likelihood = objective.likelihood();
  if (!likelihood.is_quadratic())
    return fmt::format("the {} likelihood is no quadratic function of the image", likelihood.name());
  if (trained_parameters(model, objective).size() != 1) return "the likelihood has parameters of its own to train";
  for (const auto& term : objective.terms()) {
    if (term.is_off()) continue;
    if (!is_known(term.kind())) return fmt::format("the term {} has no known proximal map", term.name());
    if (term.kind() == TermKind::tv_image && term.settings().at(0) > largest_epsilon) {
      return fmt::format("the epsilon of {} is {:g}, above {:g}", term.name(), term.settings().at(0), largest_epsilon);
    }
  }
  return {};
}

ConvexObjective::ConvexObjective(std::shared_ptr<GriddedNetImpl> model, Objective objective)
    : model_(std::move(model)), objective_(std::move(objective)), tv_(images().detach(), /*hann=*/true, {}) {
  if (auto why = obstacle(*model_, objective_); !why.empty()) throw ValueError(why);
  const torch::NoGradGuard no_grad;
  const auto own = images().detach();
  const auto shining = model_->bcube->options().pixel_mapping().forward(at::ones_like(shaped_like_model(own))).view_as(own);
  if (shining.min().item<double>() < 1) mask_ = shining;
  tv_ = TvProximal(own, /*hann=*/true, mask_);
  tv_weights_ = weights_of(TermKind::tv_image);
}

Tensor ConvexObjective::images() const {
  const auto base = model_->base();
  return base.detach().view({-1, base.size(-3), base.size(-2), base.size(-1)});
}

std::vector<double> ConvexObjective::weights_of(TermKind kind) const {
  std::vector<double> weights(static_cast<std::size_t>(images().size(0)), 0.0);
  for (const auto& term : objective_.terms()) {
    if (term.kind() != kind) continue;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += term.weight(i);
  }
  return weights;
}

Tensor ConvexObjective::gradient_at(const Tensor& sky, Tensor& chi_squared) const {
  auto gradient = at::empty_like(sky);
  chi_squared = objective_.likelihood().value_and_gradient(sky, gradient, Accumulate::overwrite);
  gradient.mul_(1 / (2 * objective_.normaliser()));
  for (const auto& term : objective_.terms()) {
    if (term.is_off() || !is_quadratic(term.kind())) continue;
    const at::AutoGradMode with_graph(true);
    auto leaf = sky.detach().requires_grad_();
    auto value = term.evaluate(ModelOutput(model_->coords(), {}, leaf));
    const auto weights = at::tensor(term.weights(), torch::kFloat64).to(value.device());
    const auto total = (value * weights.view(weights.numel() == 1 ? at::IntArrayRef{} : value.sizes())).sum();
    gradient.add_(torch::autograd::grad({total}, {leaf}).front());
  }
  return gradient;
}

std::vector<double> ConvexObjective::curvatures() {
  const torch::NoGradGuard no_grad;
  // In float64: differences of gradients are small beside the gradients.
  Tensor ignored;
  const auto shape = model_->base().sizes();
  const auto zero = at::zeros_like(model_->base().detach(), torch::kFloat64);
  const auto mask = mask_.defined() ? mask_.view(shape).to(torch::kFloat64) : Tensor();
  const auto held = [&](const Tensor& images) { return mask.defined() ? images * mask : images; };
  const auto constant = held(ops::hann(gradient_at(zero, ignored)));
  auto direction = constant.clone();
  direction.select(-1, shape.back() / 2).select(-1, shape.back() / 2).add_(norms(constant).squeeze(-1).squeeze(-1) + 1e-30);
  Tensor length;
  for (int step = 0; step < power_steps; ++step) {
    direction = held(direction) / norms(held(direction)).clamp_min(1e-300);
    direction = held(ops::hann(gradient_at(ops::hann(direction), ignored))) - constant;
    length = norms(direction);
  }
  auto found = values_of(length.flatten());
  const double largest = *std::max_element(found.begin(), found.end());
  for (auto& value : found) value = margin_of_power * std::max(value, 1e-12 * (largest > 0 ? largest : 1));
  return found;
}

CompositeFunction::Value ConvexObjective::evaluate(const Tensor& images) {
  const auto sky = ops::hann(images);
  const auto cube = shaped_like_model(sky);
  Tensor chi_squared;
  auto slopes = gradient_at(cube, chi_squared).view_as(sky);
  const auto linear = weights_of(TermKind::sparsity);
  if (linear.size() == 1) slopes.add_(linear.front());
  else slopes.add_(at::tensor(linear, torch::kFloat64).to(sky.device(), sky.scalar_type()).view({-1, 1, 1, 1}));
  const auto nll = chi_squared / (2 * objective_.normaliser());
  auto total = nll.clone();
  std::vector<Tensor> rows = {total, nll};
  std::vector<double> variation(tv_weights_.size(), 0.0);
  for (const auto& term : objective_.terms()) {
    rows.push_back(term.is_off() ? at::zeros_like(nll) : weighted(term, cube, nll));
    total += rows.back();
    if (term.kind() != TermKind::tv_image) continue;
    const auto values = values_of(rows.back());
    for (std::size_t i = 0; i < values.size(); ++i) variation[i] += values[i];
  }
  losses_ = at::stack(rows).view({static_cast<std::int64_t>(rows.size()), -1});
  return {ops::hann(slopes), std::move(variation)};
}

/// A term's weighted value, shaped and placed like `nll`.
Tensor ConvexObjective::weighted(const Term& term, const Tensor& cube, const Tensor& nll) const {
  const auto weights = at::tensor(term.weights(), torch::kFloat64).to(nll.device());
  const auto weight = weights.numel() == 1 ? weights.squeeze() : weights.view(nll.sizes());
  if (term.kind() == TermKind::sparsity) return cube.sum({-1}).sum({-2, -1}, /*keepdim=*/false, torch::kFloat64) * weight;
  if (term.kind() != TermKind::tv_image) return term.evaluate(ModelOutput(model_->coords(), {}, cube)) * weight;
  const auto base = images();
  const auto own = ops::variations(cube.view(base.sizes()), term.settings().at(0));
  const auto of_problems = at::tensor(own, torch::kFloat64).view({base.size(0), base.size(1)}).sum(1);
  return of_problems.to(nll.device()).view(nll.sizes()) * weight;
}

std::vector<double> ConvexObjective::scales(const Tensor& losses) {
  const auto table = losses.to(torch::kCPU);
  auto regularization = values_of(table[0] - table[1]);
  const auto nll = values_of(table[1]);
  for (std::size_t i = 0; i < nll.size(); ++i) {
    if (!(regularization[i] > 0)) regularization[i] = nll[i];
  }
  return regularization;
}

Tensor ConvexObjective::proximal(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>& passes) {
  std::vector<double> weights(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) weights[i] = steps[i] * tv_weights_[i];
  return tv_.apply(q, weights, passes);
}

}  // namespace mpol
