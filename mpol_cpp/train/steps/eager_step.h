#pragma once

#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/train/steps/step.h>

namespace torch::optim {
class Optimizer;
}

namespace mpol::detail {
class MomentOptimizer;
}

namespace mpol {

/// A step by LibTorch's autograd and optimisers: whatever model and terms the user composes, on any device.
class EagerStep : public Step {
 public:
  /// @throws ValueError when there is nothing to train
  EagerStep(std::shared_ptr<ImageModel> model, Objective objective, const TrainOptions& options, std::string reason);
  ~EagerStep() override;

  StepReport take(double learning_rate) override;
  void set_stopped(const std::vector<bool>& stopped) override;
  StepKind kind() const override { return StepKind::eager; }
  std::string reason() const override { return reason_; }
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  StepReport take_own(double learning_rate);
  void warn_of_idle_terms(const ObjectiveValue& value);  ///< once

  std::shared_ptr<ImageModel> model_;
  Objective objective_;
  std::vector<NamedParameter> parameters_;
  OptimizerKind kind_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;  // one of the two
  std::unique_ptr<detail::MomentOptimizer> own_;        // where problems have learning rates or ends of their own
  std::string reason_;
  bool looked_at_terms_ = false;
};

}  // namespace mpol
