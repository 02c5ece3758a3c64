#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/train/objective.h>
#include <mpol_cpp/train/train_options.h>

namespace mpol {

/// Why a fit ended.
enum class StopReason { epochs, converged, callback, interrupted, diverged };
std::string to_string(StopReason reason);

struct TrainResult {
  std::vector<std::string> columns;  ///< total, nll, terms…
  std::vector<EpochLoss> history;    ///< one row per epoch, before its update, from epoch 0 also when resumed
  EpochLoss loss;                    ///< of the final image
  std::int64_t epochs = 0;           ///< epochs done in all
  std::int64_t resumed_from = 0;     ///< epochs that were already done
  StopReason stop_reason = StopReason::epochs;
  std::vector<std::int64_t> problem_epochs;  ///< for StopScope::each: how many each problem took
  std::string diagnosis;                     ///< for `diverged`: epoch, the term that broke, what to try
  StepKind step = StepKind::eager;           ///< the kind of step taken
  std::string step_reason;                   ///< why
  double seconds = 0;                        ///< of training, checkpoints included
  double seconds_checkpoints = 0;
};

/// Fits a model to an objective: the total, summed over problems, is made small. Problems of a batch are fits of their own:
/// with TrainOptions::rate_factors and StopScope::each each of them goes where it would go alone.
///
/// A fit has diverged when the total, a term, a gradient or a parameter is not finite any more; large finite values are
/// left to the user's eye. The model then holds the last state whose loss was finite, and so does the checkpoint. For
/// that the fit keeps a copy of its state every 25 epochs (each epoch for L-BFGS, whose history is shared) and repeats the
/// steps from there: 3 images of memory for Adam and no measurable time.
///
/// The torch random generator is seeded when a fit starts. On the CPU, with the same number of threads, a run that was
/// interrupted and resumed equals one that was not bit for bit.
class Trainer {
 public:
  template <typename ModelHolder>
  Trainer(const ModelHolder& model, Objective objective, TrainOptions options = {})
      : Trainer(std::shared_ptr<ImageModel>(model.ptr()), std::move(objective), std::move(options)) {}
  /// @throws ValueError for options out of range
  Trainer(std::shared_ptr<ImageModel> model, Objective objective, TrainOptions options = {});

  /// Runs to the end.
  /// @throws DeviceError when model and objective are on different devices; ValueError when there is nothing to train or
  ///         the kind of step does not apply; FileError when a checkpoint cannot be written or is of another run
  TrainResult fit();

 private:
  std::shared_ptr<ImageModel> model_;
  Objective objective_;
  TrainOptions options_;
};

}  // namespace mpol
