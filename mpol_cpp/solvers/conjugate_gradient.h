#pragma once

#include <functional>
#include <vector>

#include <mpol_cpp/solvers/iterative_solver.h>

namespace mpol {

/// Options of a ConjugateGradient; the tolerance is 1e-6 unless it is set.
struct ConjugateGradientOptions : IterationOptions {
  ConjugateGradientOptions() { tolerance = 1e-6; }
};

/// Conjugate gradients for H x = b with a symmetric positive H, each problem by itself; ends when |b - H x| <= tolerance |b| in
/// all. The objective is <x, H x>/2 - <b, x>, of which x is the minimum. Source: Hestenes & Stiefel 1952.
class ConjugateGradient : public IterativeSolver {
 public:
  using Options = ConjugateGradientOptions;                 ///< the name that all solvers give theirs
  using Operator = std::function<Tensor(const Tensor& x)>;  ///< x to H x, like x
  /// @throws ValueError for options out of range
  ConjugateGradient(Operator symmetric, const Tensor& right_side, const Tensor& start, const Options& options = {});
  Tensor solution() const override { return x_; }

 protected:
  void iterate(IterationRecord& record, Objective objective) override;
  std::vector<double> objective() override;
  void save(NamedTensors& state) const override;
  void load(const NamedTensors& state) override;

 private:
  Operator symmetric_;
  Tensor b_, x_, residual_, direction_;
  std::vector<double> squares_, scales_;  // |residual|^2, |b|
};

}  // namespace mpol
