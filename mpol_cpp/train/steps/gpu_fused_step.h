#pragma once

#include <memory>
#include <string>

#include <mpol_cpp/train/steps/step.h>

namespace mpol {

/// FusedStep on a GPU: the kernels of ops::FusedGpuPipeline, recorded once as a CUDA graph and replayed. For the likelihoods
/// of this library (gridded, exact, loose, noise), and otherwise where FusedStep applies. Losses stay on the device until
/// somebody reads them. L-BFGS is ops::GpuLbfgs: one graph for each evaluation, and a look every few of them whether a step
/// has ended. On the CPU the kernels are emulated, for tests.
class GpuFusedStep : public Step {
 public:
  /// Empty where it applies, else why it does not.
  static std::string obstacle(ImageModel& model, const Objective& objective);

  /// @throws ValueError where there is an obstacle other than the device
  /// @throws DeviceError when CUDA or cuFFT refuse
  GpuFusedStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options, std::string reason);
  ~GpuFusedStep() override;

  /// Compares losses and gradient with those of the objective by autograd, near the present base pixels, which stay as
  /// they are: every GPU is new to kernels that were proven in an emulation. Waits for the device. Where autograd's graph finds
  /// no memory, the same is done with a small image.
  /// @return empty when they agree within what the dtype allows, else by how much they do not
  std::string disagreement();

  /// Records what a step replays, which otherwise the first one does. The base pixels stay as they are.
  /// @throws DeviceError when CUDA cannot record it
  void record();

  /// @throws ValueError when the model or the likelihood was moved or cast since
  StepReport take(double learning_rate) override;
  void set_stopped(const std::vector<bool>& stopped) override;
  /// Eight of them in a graph where so many are left: the launch of a graph is much of what a step on a small image costs.
  std::vector<StepReport> take_several(double learning_rate, std::int64_t count) override;
  bool stops_by_itself() const override;
  void set_totals(const Tensor& totals) override;

  StepKind kind() const override { return StepKind::fused; }
  std::string reason() const override { return reason_; }
  /// Kernels of one step (of one evaluation of L-BFGS), once it is recorded; else 0.
  std::int64_t launches() const;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  class Optimizer;
  std::string reason_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace mpol
