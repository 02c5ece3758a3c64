#include <mpol_cpp/proximal/norms.h>

#include <cmath>
#include <utility>

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softshrink.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

double checked_weight(double weight) {
  if (!(weight >= 0) || !std::isfinite(weight))
    throw ValueError(fmt::format("a weight of {} is none: give a finite one, 0 or more", weight));
  return weight;
}

Tensor checked_weights(Tensor weights) {
  if (!weights.is_floating_point() || !(weights >= 0).all().item<bool>() || !weights.isfinite().all().item<bool>()) {
    throw ValueError("a weight is below 0, not finite or no floating point number: give finite ones, 0 or more");
  }
  return weights;
}

Tensor scalar(double value) { return at::scalar_tensor(value, torch::kFloat64); }

/// Without this a scalar of float64 on the CPU and a tensor of weights would decide the dtype of what they are multiplied with.
Tensor like(const Tensor& weights, const Tensor& x) {
  return weights.dim() == 0 ? weights.to(x.scalar_type()) : weights.to(x.device(), x.scalar_type());
}

/// Moves each value by the threshold towards 0.
Tensor shrunk(const Tensor& q, const Tensor& threshold) {
  if (threshold.dim() == 0 && threshold.is_cpu()) return at::softshrink(q, threshold.item<double>());
  return q - q.clamp(-threshold, threshold);
}

}  // namespace

L1Norm::L1Norm(double weight) : weights_(scalar(checked_weight(weight))) {}
L1Norm::L1Norm(Tensor weights) : weights_(checked_weights(std::move(weights))) {}

Tensor L1Norm::value(const Tensor& x) const {
  if (weights_.dim() == 0) return problem_sums(x.abs()) * weights_.to(x.device());
  return problem_sums(x.abs() * like(weights_, x));
}

std::optional<double> L1Norm::common_weight() const {
  if (weights_.dim() > 0) return std::nullopt;
  return weights_.item<double>();
}

Tensor L1Norm::apply(const Tensor& q, const Tensor& step) { return shrunk(q, like(weights_, q) * step); }

std::optional<Tensor> L1Norm::dual_norm(const Tensor& y) const {
  // Where the weight is 0 the norm is infinite, unless y is 0 there.
  const auto ratios = y.to(torch::kFloat64).abs() / weights_.to(y.device(), torch::kFloat64);
  return at::where(y == 0, at::scalar_tensor(0.0, ratios.options()), ratios).amax({-3, -2, -1});
}

L2Norm::L2Norm(double weight) : weight_(checked_weight(weight)) {}

Tensor L2Norm::value(const Tensor& x) const { return weight_ * problem_norms(x); }

Tensor L2Norm::apply(const Tensor& q, const Tensor& step) {
  return q * shortening(as_factor(problem_norms(q), q), weight_ * step);
}

std::optional<Tensor> L2Norm::dual_norm(const Tensor& y) const { return problem_norms(y) / weight_; }

SquaredL2Norm::SquaredL2Norm(double weight) : weights_(scalar(checked_weight(weight))) {}
SquaredL2Norm::SquaredL2Norm(Tensor weights) : weights_(checked_weights(std::move(weights))) {}

Tensor SquaredL2Norm::value(const Tensor& x) const { return problem_sums(x.square() * like(weights_, x)) / 2; }

Tensor SquaredL2Norm::apply(const Tensor& q, const Tensor& step) { return q / (1 + like(weights_, q) * step); }

JointSparsity::JointSparsity(double l1_weight, double l21_weight, std::int64_t dim)
    : l1_(checked_weight(l1_weight)), l21_(checked_weight(l21_weight)), dim_(dim) {
  if (dim >= 0) throw ValueError(fmt::format("vectors cannot run along dimension {}: count from the last, which is -1", dim));
}

Tensor JointSparsity::value(const Tensor& x) const {
  auto value = l1_ * problem_sums(x.abs());
  if (l21_ == 0) return value;
  auto lengths = x.square().sum(dim_, /*keepdim=*/true).sqrt();
  if (dim_ < -3) lengths = lengths.squeeze(dim_);  // vectors that join problems: their sum is that of the remaining ones
  return dim_ < -3 ? value.sum(dim_ + 3) + l21_ * problem_sums(lengths) : value + l21_ * problem_sums(lengths);
}

Tensor JointSparsity::apply(const Tensor& q, const Tensor& step) {
  const auto x = l1_ > 0 ? shrunk(q, l1_ * step) : q;
  if (l21_ == 0) return x;
  return x * shortening(x.square().sum(dim_, /*keepdim=*/true).sqrt(), l21_ * step);
}

std::optional<Tensor> JointSparsity::dual_norm(const Tensor& y) const {
  if (l21_ == 0) return L1Norm(l1_).dual_norm(y);
  if (l1_ > 0 || dim_ < -3) return std::nullopt;  // no closed form
  return y.to(torch::kFloat64).square().sum(dim_, /*keepdim=*/true).sqrt().amax({-3, -2, -1}) / l21_;
}

DifferenceNorm::DifferenceNorm(Tensor weights, Variation variation)
    : weights_(checked_weights(std::move(weights))), variation_(variation) {}
DifferenceNorm::DifferenceNorm(double weight, Variation variation)
    : weights_(scalar(checked_weight(weight))), variation_(variation) {}

Tensor DifferenceNorm::lengths(const Tensor& differences, Variation variation) {
  const auto vectors = differences.unflatten(-3, {2, differences.size(-3) / 2});
  switch (variation) {
    case Variation::isotropic:
      return vectors.square().sum(-4, /*keepdim=*/true).sqrt();
    case Variation::anisotropic:
      return vectors.abs();
    case Variation::across_channels:
      return vectors.square().sum({-4, -3}, /*keepdim=*/true).sqrt();
  }
  throw ValueError("unknown kind of total variation");
}

Tensor DifferenceNorm::value(const Tensor& x) const {
  const auto all = lengths(x, variation_) * like(weights_, x).unsqueeze(weights_.dim() < 3 ? 0 : -4);
  return problem_sums(all.flatten(-4, -3));
}

Tensor DifferenceNorm::apply(const Tensor& q, const Tensor& step) {
  auto threshold = like(weights_, q) * step;
  if (threshold.dim() >= 3) threshold = threshold.unsqueeze(-4);
  const auto vectors = q.unflatten(-3, {2, q.size(-3) / 2});
  if (variation_ == Variation::anisotropic) return shrunk(vectors, threshold).flatten(-4, -3);
  return (vectors * shortening(lengths(q, variation_), threshold)).flatten(-4, -3);
}

}  // namespace mpol
