#include <mpol_cpp/proximal/total_variation.h>

#include <cmath>

#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t passes_between_gaps = 10;

double checked(double value, const char* name) {
  if (!(value >= 0) || !std::isfinite(value)) {
    throw ValueError(fmt::format("total variation: {} is {}; it must be finite, 0 or more", name, value));
  }
  return value;
}

}  // namespace

TotalVariation::TotalVariation(const TotalVariationOptions& options)
    : options_(options), differences_(options.boundary), norm_(1.0, options.variation) {
  checked(options.weight, "the weight");
  checked(options.l1_weight, "the weight of L1");
  checked(options.tolerance, "the tolerance");
  if (options.most_passes < 1)
    throw ValueError(fmt::format("total variation: {} passes are none; give 1 or more", options.most_passes));
}

Tensor TotalVariation::value(const Tensor& x) const {
  const auto variation = options_.weight * norm_.value(differences_.apply(x));
  return options_.l1_weight > 0 ? variation + options_.l1_weight * problem_sums(x.abs()) : variation;
}

Tensor TotalVariation::primal(const Tensor& q, const Tensor& step, const Tensor& dual) const {
  auto x = q - differences_.adjoint(dual) * (step * options_.weight);
  if (options_.sign == TotalVariationOptions::Sign::nonnegative) return (x - options_.l1_weight * step).clamp_min(0);
  if (options_.l1_weight == 0) return x;
  const auto threshold = options_.l1_weight * step;
  return x - x.clamp(-threshold, threshold);
}

Tensor TotalVariation::cut(const Tensor& dual) const {
  const auto lengths = DifferenceNorm::lengths(dual, options_.variation).clamp_min(1);
  return (dual.unflatten(-3, {2, dual.size(-3) / 2}) / lengths).flatten(-4, -3);
}

Tensor TotalVariation::apply(const Tensor& q, const Tensor& step) {
  const torch::NoGradGuard no_grad;
  passes_ = 0;
  const auto like = differences_.apply(q);
  if (!dual_.defined() || dual_.sizes() != like.sizes() || dual_.options().dtype() != like.options().dtype() ||
      dual_.device() != like.device()) {
    dual_ = at::zeros_like(like);
  }
  if (options_.weight == 0) return primal(q, step, at::zeros_like(dual_));
  const auto dual_step = (8 * options_.weight * step).reciprocal();
  // The sum of the terms that the gap is measured by: never 0, so that an empty image ends too.
  const auto scale = problem_sums(q.square()) / 2;
  auto p = dual_, v = dual_;
  double s = 1;
  while (passes_ < options_.most_passes) {
    auto next = cut(v + differences_.apply(primal(q, step, v)) * dual_step);
    const double next_s = (1 + std::sqrt(1 + 4 * s * s)) / 2;
    v = next + (next - p) * ((s - 1) / next_s);
    p = std::move(next);
    s = next_s;
    ++passes_;
    if (options_.tolerance == 0 || passes_ % passes_between_gaps != 0) continue;
    const auto slopes = differences_.apply(primal(q, step, p));
    const auto weight = as_factor(problem_sums(q) * 0 + 1, q) * step * options_.weight;
    const auto gap = (norm_.value(slopes) - problem_sums(slopes * p)) * weight.to(torch::kFloat64).reshape(scale.sizes());
    if ((gap <= options_.tolerance * scale).all().item<bool>()) break;
  }
  dual_ = p;
  return primal(q, step, p);
}

NamedTensors TotalVariation::state() const {
  if (!dual_.defined()) return {};
  return {{"dual", dual_.clone()}};
}

void TotalVariation::load_state(const NamedTensors& state) {
  const auto found = state.find("dual");
  dual_ = found == state.end() ? Tensor() : found->second.clone();
}

}  // namespace mpol
