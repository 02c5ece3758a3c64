#include <mpol_cpp/solvers/smooth_function.h>

#include <utility>

#include <mpol_cpp/core/error.h>

namespace mpol {

LeastSquares::LeastSquares(std::shared_ptr<const LinearMap> map, Tensor data, Tensor weights)
    : map_(std::move(map)), data_(std::move(data)), weights_(std::move(weights)) {
  if (!weights_.defined()) return;
  weights_ = weights_.to(data_);
  if (!(weights_ >= 0).all().item<bool>()) throw ValueError("a weight of least squares is below 0: give 0 or more");
}

Tensor LeastSquares::value(const Tensor& x) {
  const auto residual = map_->apply(x) - data_;
  return problem_sums(residual * weighted(residual)) / 2;
}

Tensor LeastSquares::value_and_gradient(const Tensor& x, Tensor& gradient) {
  const auto residual = map_->apply(x) - data_, slope = weighted(residual);
  gradient = map_->adjoint(slope);
  return problem_sums(residual * slope) / 2;
}

Tensor LeastSquares::curvatures(const Tensor& like) {
  const LinearFunctions normal([&](const Tensor& x) { return map_->adjoint(weighted(map_->apply(x))); },
                               [](const Tensor& y) { return y; });
  return squared_norm(normal, like);
}

std::optional<Tensor> LeastSquares::gap(const Tensor& x, ProximalMap& g) {
  if (weights_.defined() && !(weights_ > 0).all().item<bool>()) return std::nullopt;
  const auto residual = data_ - map_->apply(x), slope = weighted(residual);
  const auto length = g.dual_norm(map_->adjoint(slope));
  if (!length) return std::nullopt;
  const auto scale = length->reciprocal().clamp_max(1);
  const auto square = problem_sums(residual * slope);  // |slope|^2 / w
  return square / 2 + g.value(x) - scale * problem_sums(slope * data_) + scale.square() * square / 2;
}

}  // namespace mpol
