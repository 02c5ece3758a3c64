#pragma once

#include <memory>
#include <string>

#include <mpol_cpp/train/steps/engines/fused_engine.h>
#include <mpol_cpp/train/steps/step.h>

namespace mpol {

/// A step in three passes over the images, or a few kernels of a GPU, without autograd: for GriddedNet with the softplus
/// mapping and the regularizers that have formulas for it (regularizers/list.h). The gridded likelihood is part of the
/// passes; any other one that trains nothing of its own is asked for its value and gradient between them, on a GPU if it can be
/// recorded. Adam and gradient descent update the base pixels within the last pass; L-BFGS takes the gradient of the passes, in
/// the compact form. Its state is that of EagerStep with the same optimizer.
class FusedStep : public Step {
 public:
  /// Says why no fused step applies; empty where one does.
  static std::string obstacle(ImageModel& model, const Objective& objective, const TrainOptions& options);
  /// The same for a GPU, wherever the model is.
  static std::string obstacle_on_gpu(ImageModel& model, const Objective& objective);

  /// @throws ValueError where there is an obstacle; DeviceError when CUDA or cuFFT refuse
  FusedStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options,
            std::string reason);

  using EngineMaker = decltype(&detail::make_gpu_engine);
  /// @param make  takes another engine than that of the model's device: detail::make_gpu_engine emulates a GPU on the CPU
  FusedStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options, std::string reason,
            EngineMaker make);

  /// Compares losses and gradient with those of the objective by autograd where the engine has not been shown to work on every
  /// machine: near the present base pixels, which stay as they are. Waits for the device. Where autograd's graph finds no
  /// memory, the same is done with a small image.
  /// @return empty when they agree within what the dtype allows, else by how much they do not
  std::string disagreement() { return engine_->disagreement(); }
  /// Records what a step replays, which otherwise the first one does. The base pixels stay as they are.
  /// @throws DeviceError when CUDA cannot record it
  void record();
  /// Kernels of one step on a GPU (of one evaluation of L-BFGS), once it is recorded; else 0.
  std::int64_t launches() const { return engine_->launches(); }

  /// @throws ValueError when the model or the likelihood was moved or cast since
  StepReport take(double learning_rate) override;
  std::vector<StepReport> take_several(double learning_rate, std::int64_t count) override;
  void set_stopped(const std::vector<bool>& stopped) override;
  bool stops_by_itself() const override { return engine_->stops_by_itself(); }
  void set_totals(const Tensor& totals) override;

  StepKind kind() const override { return StepKind::fused; }
  std::string reason() const override { return reason_; }
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  Tensor base() const { return model_->base(); }

  std::shared_ptr<ImageModel> model_;
  OptimizerKind optimizer_;
  torch::Dtype dtype_;
  std::size_t problems_;
  bool stops_each_;
  std::string reason_;
  std::unique_ptr<detail::FusedEngine> engine_;
};

}  // namespace mpol
