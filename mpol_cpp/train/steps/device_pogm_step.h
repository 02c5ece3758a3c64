#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/device/recorded_work.h>
#include <mpol_cpp/solvers/device/device_pogm.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/train/steps/recording/recorded_places.h>
#include <mpol_cpp/train/steps/step.h>

namespace mpol {

/// An iteration of POGM or FISTA on a GPU, as a step: its numbers stay there (DevicePogm), and with a likelihood of this library
/// it is recorded as a CUDA graph, anew whenever problems get more passes: the memory of a recording stays taken, and fewer
/// passes come back only with an earlier state. Where it cannot be recorded the reason is logged, and the same operations follow
/// one by one. On the CPU nothing is recorded, which is of use in tests only.
class DevicePogmStep : public Step {
 public:
  /// @throws ValueError unless the objective is convex in the model's base pixels (ConvexObjective)
  DevicePogmStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options);

  /// @throws ValueError when parameters or buffers of the likelihood were moved or cast since
  StepReport take(double learning_rate) override;
  /// @throws ValueError always: problems end together
  void set_stopped(const std::vector<bool>& stopped) override;
  void hold_settled(const std::vector<bool>& still) override;
  bool has_converged() const override;
  std::optional<double> gap() override;
  StepKind kind() const override { return StepKind::eager; }
  std::string reason() const override { return name_; }
  /// Kernels of the last iteration, where it is recorded; else 0.
  std::int64_t launches() const;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  void iterate(std::int64_t passes);
  std::unique_ptr<RecordedWork> record(std::int64_t passes);

  std::string name_;  // of the optimizer
  ConvexObjective function_;
  DevicePogm pogm_;
  double tolerance_;
  bool is_recordable_;
  detail::RecordedPlaces places_;
  std::unique_ptr<RecordedWork> recorded_;
  std::int64_t passes_of_recorded_ = 0;
};

}  // namespace mpol
