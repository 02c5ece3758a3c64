#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/train/objective.h>

namespace mpol {

enum class OptimizerKind { adam, sgd, lbfgs };
enum class StepKind { automatic, eager, captured, fused };

/// Why a fit ended.
enum class StopReason { epochs, converged, callback, interrupted, diverged };
std::string to_string(StopReason reason);
std::string to_string(OptimizerKind kind);
std::string to_string(StepKind kind);

/// Multiplies the learning rate over the epochs; its state is the epoch alone.
/// factor(epoch) for epoch = 0, 1, …; the library's own: constant, exponential decay, step decay, cosine.
struct LearningRateSchedule {
  std::string description = "constant";
  std::function<double(std::int64_t)> factor = [](std::int64_t) { return 1.0; };

  static LearningRateSchedule exponential(double gamma);                              ///< gamma^epoch
  static LearningRateSchedule step(std::int64_t interval, double gamma);              ///< gamma^(epoch / interval)
  static LearningRateSchedule cosine(std::int64_t epochs, double final_factor = 0.0);  ///< half a cosine
};

/// The loss of one epoch, before its update. Weighted terms in the order of the objective's columns.
struct EpochLoss {
  std::int64_t epoch = 0;
  double learning_rate = 0;
  std::vector<double> values;  ///< total, nll, terms… (sums over problems)

  double total() const { return values.at(0); }
  double nll() const { return values.at(1); }
};

enum class CallbackAction { proceed, stop };

/// Called after every epoch (every update); returning `stop` ends the fit there.
struct Progress {
  const EpochLoss& loss;
  const std::vector<std::string>& columns;
  std::int64_t epochs;            ///< epochs asked for
  double seconds;                 ///< of training so far
  ImageModel& model;
};
using Callback = std::function<CallbackAction(const Progress&)>;

struct TrainOptions {
  TORCH_ARG(OptimizerKind, optimizer) = OptimizerKind::adam;
  TORCH_ARG(double, learning_rate) = 0.3;
  TORCH_ARG(LearningRateSchedule, schedule) = {};
  /// Exactly this many epochs unless a stop criterion, callback or interruption ends the fit before.
  TORCH_ARG(std::int64_t, epochs) = 500;
  /// Stop when the total changed by less than this, relatively, over `stop_window` epochs; 0 is off.
  TORCH_ARG(double, stop_relative) = 0.0;
  TORCH_ARG(std::int64_t, stop_window) = 10;
  /// Move model, objective and optimiser state there first; nothing is moved when unset.
  TORCH_ARG(std::optional<torch::Device>, device) = std::nullopt;
  TORCH_ARG(std::optional<torch::Dtype>, dtype) = std::nullopt;
  TORCH_ARG(std::uint64_t, seed) = 0;
  TORCH_ARG(StepKind, step) = StepKind::automatic;
  TORCH_ARG(std::vector<Callback>, callbacks) = {};
  /// Polled after every epoch; true ends the fit with StopReason::interrupted (signal handlers set it).
  TORCH_ARG(std::function<bool()>, interrupted) = {};

  /// Where checkpoints go (a file; the one before is kept beside it); empty: none are written.
  TORCH_ARG(std::filesystem::path, checkpoint) = {};
  /// Epochs between checkpoints; 0: every 30 seconds.
  TORCH_ARG(std::int64_t, checkpoint_interval) = 0;
  /// Continue from the checkpoint when it is there.
  TORCH_ARG(bool, resume) = false;
  /// Stored in the checkpoint and compared when resuming: settings and digest of the input, "key = value".
  TORCH_ARG(std::vector<std::string>, fingerprint) = {};
};

struct TrainResult {
  std::vector<std::string> columns;  ///< total, nll, terms…
  std::vector<EpochLoss> history;    ///< one row per epoch, before its update, from epoch 0 also when resumed
  EpochLoss loss;                    ///< of the final image
  std::int64_t epochs = 0;           ///< epochs done in all
  std::int64_t resumed_from = 0;     ///< epochs that were already done
  StopReason stop_reason = StopReason::epochs;
  std::string diagnosis;             ///< for `diverged`: epoch, the term that broke, what to try
  StepKind step = StepKind::eager;   ///< the kind of step taken
  std::string step_reason;           ///< why
  double seconds = 0;                ///< of training, checkpoints included
  double seconds_checkpoints = 0;
};

/// Fits a model to an objective.
class Trainer {
 public:
  template <typename ModelHolder>
  Trainer(const ModelHolder& model, Objective objective, TrainOptions options = {})
      : Trainer(std::shared_ptr<ImageModel>(model.ptr()), std::move(objective), std::move(options)) {}
  /// @throws ValueError for options out of range
  Trainer(std::shared_ptr<ImageModel> model, Objective objective, TrainOptions options = {});

  /// Runs to the end; on divergence the model holds the last good state.
  /// @throws DeviceError when model and objective are on different devices; FileError when a checkpoint cannot be
  ///         written or is of another run
  TrainResult fit();

 private:
  std::shared_ptr<ImageModel> model_;
  Objective objective_;
  TrainOptions options_;
};

}  // namespace mpol
