#pragma once

#include <memory>
#include <optional>

#include <mpol_cpp/proximal/linear_map.h>
#include <mpol_cpp/proximal/proximal_map.h>

namespace mpol {

/// A convex differentiable f of (…, channels, rows, columns), a sum of its problems.
class SmoothFunction {
 public:
  virtual ~SmoothFunction() = default;
  /// f of each problem, (…) float64.
  virtual Tensor value(const Tensor& x) = 0;
  /// The same, and the gradient of their sum, like x.
  virtual Tensor value_and_gradient(const Tensor& x, Tensor& gradient) = 0;
  /// An upper bound of the gradient's Lipschitz constant in each problem, (…) float64.
  virtual Tensor curvatures(const Tensor& like) = 0;
  /// How far f + g is above its least value at most, (…) float64, where a bound is known.
  virtual std::optional<Tensor> gap(const Tensor& /*x*/, ProximalMap& /*g*/) { return std::nullopt; }
};

/// sum_i w_i |A x - b|_i^2 / 2.
class LeastSquares : public SmoothFunction {
 public:
  /// @param data     b, like A x
  /// @param weights  >= 0, broadcastable to b; undefined: 1
  LeastSquares(std::shared_ptr<const LinearMap> map, Tensor data, Tensor weights = {});
  Tensor value(const Tensor& x) override;
  Tensor value_and_gradient(const Tensor& x, Tensor& gradient) override;
  Tensor curvatures(const Tensor& like) override;
  /// For a g that is a norm: with the residual r = w (b - A x) and s = min(1, 1/|A* r|_dual) that of the dual point s r,
  ///   f(x) + g(x) - <s r, b> + |s r|^2 / (2 w)
  /// @returns nothing where weights are 0 or g has no dual norm
  std::optional<Tensor> gap(const Tensor& x, ProximalMap& g) override;

 private:
  Tensor weighted(const Tensor& residual) const { return weights_.defined() ? residual * weights_ : residual; }
  std::shared_ptr<const LinearMap> map_;
  Tensor data_, weights_;
};

}  // namespace mpol
