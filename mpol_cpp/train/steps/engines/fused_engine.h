#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_memory.h>
#include <mpol_cpp/train/optimizers/moments.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/train/steps/engines/step_report.h>

namespace mpol::detail {

/// Where a fused step computes: it knows the base pixels of a model, the objective, and the update. Callers hold a NoGradGuard
/// and call check_places() first.
class FusedEngine {
 public:
  virtual ~FusedEngine() = default;

  /// @throws ValueError when the model or the likelihood was moved or cast since
  virtual void check_places() const = 0;

  /// Takes `count` steps of Adam or gradient descent. @return the report of each
  virtual std::vector<StepReport> update(double learning_rate, std::int64_t count) = 0;
  /// Takes one step of L-BFGS, which evaluates value and gradient several times along its direction.
  /// @return the losses of its first evaluation
  virtual StepReport search(double learning_rate) = 0;

  /// @param stopped  which problems stand still from now on, one flag for each
  virtual void set_stopped(const std::vector<bool>& stopped) = 0;
  /// Whether it stops problems by TrainOptions::stop_relative itself.
  virtual bool stops_by_itself() const { return false; }
  /// @param totals  (epochs, problems), which an engine that stops problems by itself goes on from
  virtual void set_totals(const Tensor& totals) = 0;

  /// What Adam or gradient descent keep of the base pixels.
  virtual std::vector<Moments> moments() const = 0;
  virtual std::int64_t steps() const = 0;  ///< of Adam or gradient descent so far
  virtual void set_steps(std::int64_t steps) = 0;
  /// What L-BFGS keeps.
  virtual ops::LbfgsMemory lbfgs_memory() = 0;
  virtual void restore(const ops::LbfgsMemory& memory) = 0;

  /// Says by how much losses and gradient differ from those of autograd more than the dtype allows; empty where they do not, or
  /// where tests have shown it for all machines.
  virtual std::string disagreement() { return {}; }
  /// Records what a step replays, which otherwise the first one does. @throws DeviceError when the device cannot record it
  virtual void record() {}
  /// Counts the kernels that one recorded step launches.
  virtual std::int64_t launches() const { return 0; }
};

/// The passes of ops::FusedPipeline on the CPU, which update the base pixels within the last one.
/// @throws ValueError for rate factors of another number of problems
std::unique_ptr<FusedEngine> make_cpu_engine(std::shared_ptr<ImageModel> model, const Objective& objective,
                                             const TrainOptions& options);

/// The kernels of ops::FusedGpuPipeline, recorded once as a CUDA graph and replayed. Losses stay on the device until somebody
/// reads them. L-BFGS is ops::GpuLbfgs: one graph for each evaluation, and a look every few of them whether a step has ended.
/// For a model on the CPU the kernels are emulated, for tests.
/// @throws ValueError for rate factors of another number of problems; DeviceError when CUDA or cuFFT refuse
std::unique_ptr<FusedEngine> make_gpu_engine(std::shared_ptr<ImageModel> model, const Objective& objective,
                                             const TrainOptions& options);

}  // namespace mpol::detail
