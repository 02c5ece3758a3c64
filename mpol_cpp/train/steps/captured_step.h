#pragma once

#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/device/recorded_work.h>
#include <mpol_cpp/train/optimizers/moment_optimizer.h>
#include <mpol_cpp/train/steps/recording/recorded_places.h>
#include <mpol_cpp/train/steps/step.h>

namespace mpol {

/// EagerStep's step recorded once as a CUDA graph and replayed: autograd's kernels without the host between them. Adam is
/// LibTorch's fused one for float32 parameters; Adam and gradient descent have their learning rate and step counter on the
/// device. On the CPU nothing is recorded and the same operations run each time, which is of use in tests only.
class CapturedStep : public Step {
 public:
  /// Empty where a step can be recorded as far as one knows before, else why it cannot.
  static std::string obstacle(ImageModel& model, const Objective& objective, const TrainOptions& options);

  /// @throws ValueError when there is nothing to train, or for L-BFGS, whose search needs the host
  CapturedStep(std::shared_ptr<ImageModel> model, Objective objective, const TrainOptions& options, std::string reason);

  /// @throws ValueError when parameters or buffers of model or likelihood were moved or cast since the first step
  /// @throws DeviceError, the first time, when the model or a term waits for the device or does what no graph can hold
  StepReport take(double learning_rate) override;
  /// @throws ValueError always: all its problems go on
  void set_stopped(const std::vector<bool>& stopped) override;
  StepKind kind() const override { return StepKind::captured; }
  std::string reason() const override { return reason_; }
  /// Kernels of one step, once it is recorded; else 0.
  std::int64_t launches() const { return work_ ? work_->launches() : 0; };
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  torch::Device device() const { return parameters_.front().tensor.device(); }
  void record();
  void run();  ///< what is recorded
  void run_first();

  std::shared_ptr<ImageModel> model_;
  Objective objective_;
  std::string reason_;
  std::vector<NamedParameter> parameters_;
  detail::MomentOptimizer optimizer_;
  Tensor report_;  // (columns problems + 1) float64: the last step's losses and sum of parameters
  detail::RecordedPlaces places_;
  std::unique_ptr<RecordedWork> work_;
};

}  // namespace mpol
