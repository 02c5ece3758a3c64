#pragma once

#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/train/steps/fused_loss.h>
#include <mpol_cpp/train/steps/step.h>

namespace torch::optim {
class Optimizer;
}

namespace mpol {

/// An optimizer of LibTorch on the gradient of the fused passes (FusedLoss): for updates that FusedStep does not know.
class FusedGradientStep : public Step {
 public:
  /// @throws ValueError where FusedLoss has an obstacle
  FusedGradientStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options);
  ~FusedGradientStep() override;

  StepReport take(double learning_rate) override;
  void set_stopped(const std::vector<bool>& stopped) override;
  StepKind kind() const override { return StepKind::fused; }
  std::string reason() const override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  std::shared_ptr<ImageModel> model_;
  FusedLoss loss_;
  std::vector<NamedParameter> parameters_;
  OptimizerKind kind_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace mpol
