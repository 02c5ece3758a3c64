#pragma once

#include <memory>
#include <vector>

#include <mpol_cpp/solvers/objective_admm.h>
#include <mpol_cpp/train/steps/convex_step.h>

namespace mpol {

/// An iteration of ADMM.
class AdmmStep : public ConvexStep {
 public:
  /// @throws ValueError unless the objective is convex in the model's base pixels (ConvexObjective)
  AdmmStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options)
      : ConvexStep(model, objective, options, Parts::problems), admm_(function(), function().images()) {}

 private:
  void prepare() override { admm_.prepare(); }
  std::vector<bool> iterate() override {
    admm_.iterate();
    return std::vector<bool>(static_cast<std::size_t>(admm_.images().size(0)), true);
  }
  bool has_settled(double tolerance, const std::vector<double>& scales) const override {
    return admm_.has_converged(tolerance, scales);
  }
  NamedTensors solver_state() const override { return admm_.state(); }
  void load_solver_state(const NamedTensors& state) override { admm_.load_state(state); }

  ObjectiveAdmm admm_;
};

}  // namespace mpol
