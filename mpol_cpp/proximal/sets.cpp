#include <mpol_cpp/proximal/sets.h>

#include <tuple>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sort.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

Tensor NonNegative::apply(const Tensor& q, const Tensor& /*step*/) {
  const auto x = q.clamp_min(0);
  return mask_.defined() ? x * mask_.to(q.device(), q.scalar_type()) : x;
}

Box::Box(double lower, double upper) : lower_(lower), upper_(upper) {
  if (!(lower <= upper)) throw ValueError(fmt::format("no value is between {} and {}: give the lower end first", lower, upper));
}

Tensor Box::apply(const Tensor& q, const Tensor& /*step*/) { return q.clamp(lower_, upper_); }

L1Ball::L1Ball(double radius) : radius_(radius) {
  if (!(radius > 0)) throw ValueError(fmt::format("a ball of radius {} is none: give one above 0", radius));
}

Tensor L1Ball::apply(const Tensor& q, const Tensor& /*step*/) {
  // With values sorted from the largest, (s_k - r)/k is largest for the k values that stay above 0, and is what they lose.
  const auto magnitudes = std::get<0>(at::sort(q.abs().flatten(-3, -1).to(torch::kFloat64), -1, /*descending=*/true));
  const auto counts = at::arange(1, magnitudes.size(-1) + 1, magnitudes.options());
  const auto loss = ((magnitudes.cumsum(-1) - radius_) / counts).amax(-1).clamp_min(0);
  const auto threshold = as_factor(loss, q);
  return q - q.clamp(-threshold, threshold);
}

L2Ball::L2Ball(Tensor radii, Tensor center) : radii_(std::move(radii)), center_(std::move(center)) {
  if (!(radii_ >= 0).all().item<bool>() || !radii_.isfinite().all().item<bool>()) {
    throw ValueError("a ball's radius is below 0 or not finite: give finite ones, 0 or more");
  }
}
L2Ball::L2Ball(double radius, Tensor center) : L2Ball(at::scalar_tensor(radius, torch::kFloat64), std::move(center)) {}

Tensor L2Ball::apply(const Tensor& q, const Tensor& /*step*/) {
  const auto from = center_.defined() ? q - center_.to(q) : q;
  const auto lengths = problem_norms(from);
  const auto factor = as_factor((radii_.to(q.device(), torch::kFloat64) / lengths.clamp_min(1e-300)).clamp_max(1), q);
  return center_.defined() ? from * factor + center_.to(q) : from * factor;
}

}  // namespace mpol
