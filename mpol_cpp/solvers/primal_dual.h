#pragma once

#include <memory>
#include <vector>

#include <mpol_cpp/solvers/iterative_solver.h>
#include <mpol_cpp/solvers/smooth_function.h>

namespace mpol {

/// Options of a PrimalDual.
struct PrimalDualOptions : IterationOptions {
  double relaxation =
      1;  ///< 0 < relaxation < 2 - (curvature of f)/2 / (1/tau - sigma |L|^2): below 3/2 for the steps chosen here
  /// sigma of each problem, or one for all, > 0. Empty: 1/|L|. Other scales of x and L x want others.
  std::vector<double> dual_steps = {};
  std::vector<double> squared_norms = {};  ///< |L|^2 of each problem, or one for all, > 0. Empty: by power steps
};

/// The primal-dual method of Condat and Vu for  f(x) + g(x) + h(L x)  with a smooth f and the proximal maps of g and h:
///
///   x' = prox_g(x - tau (f'(x) + L* y), tau)
///   y' = prox_h*(y + sigma L (2 x' - x), sigma),   1/tau = curvature of f + sigma |L|^2
///
/// then both go on from there by the relaxation. Several h_i(L_i x): StackedMap and StackedProximal. It has converged when the
/// changes of x and y, relative to their lengths, are within the tolerance.
/// Source: Condat 2013; Vu 2013.
class PrimalDual : public IterativeSolver {
 public:
  using Options = PrimalDualOptions;  ///< the name that all solvers give theirs
  /// @param f  nothing: 0, the method of Chambolle and Pock
  /// @throws ValueError for options out of range
  PrimalDual(std::shared_ptr<SmoothFunction> f, std::shared_ptr<ProximalMap> g, std::shared_ptr<const LinearMap> map,
             std::shared_ptr<ProximalMap> h, const Tensor& start, Options options = {});

  /// What g allows: the last result of its proximal map.
  Tensor solution() const override { return allowed_; }
  /// y.
  const Tensor& dual() const { return y_; }

 protected:
  void iterate(IterationRecord& record, Objective objective) override;
  std::vector<double> objective() override;
  void save(NamedTensors& state) const override;
  void load(const NamedTensors& state) override;

 private:
  Options options_;
  std::shared_ptr<SmoothFunction> f_;
  std::shared_ptr<ProximalMap> g_, h_;
  std::shared_ptr<const LinearMap> map_;
  Tensor x_, y_, allowed_;
  std::size_t count_;
  std::vector<double> primal_steps_, dual_steps_;
};

}  // namespace mpol
