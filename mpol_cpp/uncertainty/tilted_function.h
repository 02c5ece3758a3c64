#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <mpol_cpp/solvers/convex_objective.h>

namespace mpol {

/// A convex function with a linear term less: F(z) - <tilt, z>.
class TiltedFunction : public CompositeFunction {
 public:
  /// @param function  outlives this one
  explicit TiltedFunction(ConvexObjective& function) : function_(function) {}

  /// @param tilt  like the model's images, contiguous; undefined: none
  void set_tilt(Tensor tilt) { tilt_ = std::move(tilt); }

  std::vector<double> curvatures() override { return function_.curvatures(); }
  bool mixes_images() const override { return function_.mixes_images(); }
  std::vector<double> evaluate(const Tensor& images, Tensor& gradient) override {
    auto values = function_.evaluate(images, gradient);
    if (tilt_.defined()) gradient.sub_(tilt_.view_as(gradient));
    return values;
  }
  void proximal(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>& passes, Tensor& x) override {
    function_.proximal(q, steps, passes, x);
  }

 private:
  ConvexObjective& function_;
  Tensor tilt_;
};

}  // namespace mpol
