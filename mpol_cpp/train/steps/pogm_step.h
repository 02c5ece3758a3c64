#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <mpol_cpp/solvers/pogm.h>
#include <mpol_cpp/train/steps/convex_step.h>

namespace mpol {

/// How an optimizer extrapolates: pogm or fista.
inline Momentum momentum_of(OptimizerKind kind) { return kind == OptimizerKind::fista ? Momentum::fista : Momentum::optimized; }

/// Sums numbers over ranks; empty without them.
inline std::function<void(std::vector<double>&)> sum_over(const std::shared_ptr<Communicator>& ranks) {
  if (!ranks || ranks->is_alone()) return {};
  return [ranks](std::vector<double>& numbers) { ranks->sum(numbers); };
}

/// An iteration of POGM or FISTA.
class PogmStep : public ConvexStep {
 public:
  /// @throws ValueError unless the objective is convex in the model's base pixels (ConvexObjective)
  PogmStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options)
      : ConvexStep(model, objective, options, Parts::images),
        pogm_(function(), function().images(),
              {.momentum = momentum_of(options.optimizer()),
               .sum_over_ranks = function().parts() == Parts::problems ? sum_over(options.ranks()) : nullptr}) {}

 private:
  void prepare() override { pogm_.prepare(); }
  std::vector<bool> iterate() override { return pogm_.iterate(); }
  bool has_settled(double tolerance, const std::vector<double>& scales) const override {
    return pogm_.has_converged(tolerance, scales);
  }
  void hold(double tolerance, const std::vector<double>& scales, const std::vector<bool>& still) override {
    pogm_.hold_settled(tolerance, scales, still);
  }
  NamedTensors solver_state() const override { return pogm_.state(); }
  void load_solver_state(const NamedTensors& state) override { pogm_.load_state(state); }

  Pogm pogm_;
};

}  // namespace mpol
