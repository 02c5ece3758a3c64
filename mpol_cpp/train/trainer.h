#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol {

/// Why a fit ended.
enum class StopReason {
  epochs,       ///< all that were asked for were taken
  converged,    ///< by the criterion or tolerance of the options
  callback,     ///< one of the callbacks said so
  interrupted,  ///< TrainOptions::interrupted said so
  diverged      ///< the loss is not finite, or exploded
};
std::string to_string(StopReason reason);  ///< the name of the reason: "converged"

/// What a fit came to.
struct TrainResult {
  std::vector<std::string> columns;             ///< total, nll, terms…
  LossHistory history;                          ///< one row per epoch, before its update, from epoch 0 also when resumed
  EpochLoss loss;                               ///< of the final image
  std::int64_t epochs = 0;                      ///< epochs done in all
  std::int64_t resumed_from = 0;                ///< epochs that were already done
  StopReason stop_reason = StopReason::epochs;  ///< why it took no further epoch
  std::optional<double>
      gap;  ///< of convex optimizers: how far the final objective can at most be above its minimum, where that is known
  std::vector<std::int64_t> problem_epochs;  ///< for StopScope::each: how many each problem took
  std::string diagnosis;                     ///< for `diverged`: epoch, the term that broke, what to try
  std::vector<std::string> warnings;         ///< what makes the image doubtful, in words; also logged
  StepKind step = StepKind::eager;           ///< the kind of step taken
  std::string step_reason;                   ///< why
  std::string checkpoint_failure;            ///< why the checkpoint of the last epoch could not be written; empty: it is there
  std::int64_t checkpoint_epochs = 0;        ///< epochs done in the newest checkpoint; 0: there is none
  double seconds = 0;                        ///< of training, checkpoints included
  double seconds_checkpoints = 0;            ///< of these, for writing checkpoints
};

/// Fits a model to an objective: the total, summed over problems, is made small. Problems of a batch are fits of their own: with
/// TrainOptions::rate_factors and StopScope::each the result for each problem equals a separate fit.
///
/// A fit has diverged when the total, a term, a gradient or a parameter is not finite any more. The model then holds the last
/// state whose loss was finite, and so does the checkpoint. For that the fit keeps a copy of its state every 25 epochs (each
/// epoch for L-BFGS, whose history is shared) and repeats the steps from there: 3 images of memory for Adam and no measurable
/// time.
///
/// It has also diverged when its loss exploded without leaving the finite numbers: beyond 1000 times its first value and that
/// of an empty image, and in the end not below 0.9 of either, or with an image that died (the data cannot tell it from an
/// empty one, to 1e-9 of chi^2); or when the image died and the loss is above the first, unless the fit converged. The model then
/// holds its last state.
///
/// Less than that are warnings, in the result and in the log: a final loss above the first (not when it converged), an image that
/// died, and a fit of 20 epochs or more that was still moving when its epochs ended (not when it converged): over their last
/// tenth the flux changed by more than 2 %, or the mean loss, beside the tenth before, by more than 1 %; of a fit that is to
/// converge, that its epochs ended before. They cost one evaluation of the image after nine tenths of the epochs (of a fit that
/// is to converge four in each doubling of them, and five images of memory) and one of the likelihood at an empty image, and are
/// the same for a resumed fit.
///
/// A checkpoint that cannot be written is a warning and tried again at its next time; TrainResult::checkpoint_failure tells
/// whether the last one is missing.
///
/// The torch random generator is seeded when a fit starts. On the CPU, with the same number of threads, a run that was
/// interrupted and resumed equals one that was not bit for bit.
class Trainer {
 public:
  /// @param model  a holder, a pointer to its module, or what clone() of that gives
  /// @throws ValueError for options out of range, or when the model and the likelihood are on different grids
  template <HolderOf<ImageModel> Holder>
  Trainer(const Holder& model, Objective objective, TrainOptions options = {})
      : Trainer(std::shared_ptr<ImageModel>(model.ptr()), std::move(objective), std::move(options)) {}
  /// The same of a pointer to a class that is known to be an ImageModel.
  template <std::derived_from<ImageModel> Own>
  Trainer(const std::shared_ptr<Own>& model, Objective objective, TrainOptions options = {})
      : Trainer(std::shared_ptr<ImageModel>(model), std::move(objective), std::move(options)) {}
  /// The same of what clone() gives. @throws ValueError also where it is no ImageModel
  Trainer(const std::shared_ptr<torch::nn::Module>& model, Objective objective, TrainOptions options = {})
      : Trainer(with_interface<ImageModel>(model, "ImageModel"), std::move(objective), std::move(options)) {}
  /// The same of the interface.
  Trainer(std::shared_ptr<ImageModel> model, Objective objective, TrainOptions options = {});

  /// Runs to the end. A fit that diverged is logged as a warning, or thrown, as TrainOptions::on_divergence says.
  /// @throws DeviceError when model and objective are on different devices; ValueError when there is nothing to train or
  ///         the kind of step does not apply; FileError when a checkpoint to resume from cannot be read or is of another run;
  ///         DivergedError where that was asked for
  TrainResult fit();

 private:
  std::shared_ptr<ImageModel> model_;
  Objective objective_;
  TrainOptions options_;
};

}  // namespace mpol
