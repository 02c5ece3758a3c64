#pragma once

#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/pogm.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/train/steps/step.h>

namespace mpol {

/// How an optimizer that is_proximal() extrapolates.
inline Momentum momentum_of(OptimizerKind kind) { return kind == OptimizerKind::fista ? Momentum::fista : Momentum::optimized; }

/// An iteration of POGM or FISTA as a step: an epoch of a convex objective.
class PogmStep : public Step {
 public:
  /// @throws ValueError unless the objective is convex in the model's base pixels (ConvexObjective)
  PogmStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options);

  /// The learning rate is not looked at.
  StepReport take(double learning_rate) override;
  void set_stopped(const std::vector<bool>& stopped) override;
  bool has_converged() const override;
  std::optional<double> gap() override;
  StepKind kind() const override { return StepKind::eager; }
  std::string reason() const override { return name_; }
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  std::string name_;  // of the optimizer
  std::unique_ptr<ConvexObjective> function_;
  Pogm pogm_;
  std::vector<double> losses_;  // columns problems, of the present images; empty: not known yet
  double tolerance_;
};

}  // namespace mpol
