#pragma once

#include <memory>
#include <string>

#include <mpol_cpp/train/steps/step.h>

namespace mpol {

/// A step in three passes over the images, without autograd, on the CPU: for GriddedNet with the softplus mapping and the
/// regularizers that have formulas for it (regularizers/list.h). The gridded likelihood is part of the
/// passes; any other one that trains nothing of its own is asked for its value and gradient between them. Adam and gradient
/// descent update the base pixels within the last pass; L-BFGS goes LibTorch's way on the gradient of the passes, in the compact
/// form. Its state is that of EagerStep with the same optimiser.
class FusedStep : public Step {
 public:
  /// Empty where a fused step applies, else why it does not.
  static std::string obstacle(ImageModel& model, const Objective& objective, const TrainOptions& options);

  /// @throws ValueError where there is an obstacle
  FusedStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options, std::string reason);
  ~FusedStep() override;

  StepReport take(double learning_rate) override;
  void set_stopped(const std::vector<bool>& stopped) override;
  StepKind kind() const override { return StepKind::fused; }
  std::string reason() const override { return reason_; }
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  class Optimizer;
  std::string reason_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace mpol
