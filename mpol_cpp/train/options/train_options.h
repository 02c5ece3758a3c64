#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/device/precision.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/train/options/loss_history.h>
#include <mpol_cpp/train/options/schedule.h>

namespace torch::optim {
class Optimizer;
}

namespace mpol {

/// How parameters follow from gradients.
enum class OptimizerKind {
  adam,   ///< TrainOptions::betas, eps 1e-8
  sgd,    ///< gradient descent, with momentum if asked for
  lbfgs,  ///< strong Wolfe line search; one epoch is up to 20 iterations, and the problems of a batch share the search
  pogm,   ///< proximal optimized gradient (solvers/pogm.h), to the optimum of a convex objective; no learning rate
  fista,  ///< the same with the momentum of FISTA
  admm,   ///< the alternating direction method of multipliers (solvers/objective_admm.h), to the same optimum
  own,    ///< an optimizer of LibTorch (TrainOptions::own_optimizer)
};
/// Whether it goes to the optimum of a convex objective by proximal maps: pogm, fista and admm.
constexpr bool is_proximal(OptimizerKind kind) {
  return kind == OptimizerKind::pogm || kind == OptimizerKind::fista || kind == OptimizerKind::admm;
}
/// How much of Adam's moments each step keeps.
struct Betas {
  double first = 0.9;     ///< of the gradients, in [0, 1)
  double second = 0.999;  ///< of their squares, in [0, 1)
};
/// An optimizer of LibTorch, or one derived from its base class.
struct OwnOptimizer {
  /// What a checkpoint compares when a run is resumed: a text that names its kind and settings.
  std::string description;
  /// Makes it for the parameters of a fit. Its learning rate is that of the options, set anew in each epoch.
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor> parameters)> make;
};

/// What computes the value, gradient and update of an epoch.
enum class StepKind {
  automatic,  ///< the fastest that the fit allows
  eager,      ///< by autograd, operation by operation: any model and objective
  captured,   ///< the same, recorded as a CUDA graph: Adam and gradient descent on a GPU
  fused       ///< in few passes of our own kernels: the library's own models and terms
};
/// What the stop criterion looks at.
enum class StopScope {
  sum,   ///< the total summed over problems
  each,  ///< each problem's own: one that has converged stands still while others go on; the fit ends with the last
};

/// What a fit that diverged does besides saying so in its result.
enum class OnDivergence {
  warn,   ///< logs the diagnosis as a warning
  error,  ///< throws it as DivergedError, the model and the checkpoint being as they are otherwise
  off,    ///< nothing
};

std::string to_string(OptimizerKind kind);  ///< "adam", "sgd", "lbfgs", "pogm", "fista", "admm" or "own"
std::string to_string(StepKind kind);       ///< "auto", "eager", "captured" or "fused"
std::string to_string(StopScope scope);     ///< "sum" or "each"

/// What a callback wants.
enum class CallbackAction {
  proceed,  ///< the next epoch
  stop      ///< an end after this one
};

/// Called after every epoch (every update), in their order; returning `stop` ends the fit there.
///
/// On a GPU losses are fetched for up to 48 epochs, or 50 ms, at once: the callbacks are then called for one epoch after the
/// other, while the model is already that of the last of them (TrainOptions::model_interval says after which epochs it must not
/// be). Whoever returns `stop` ends the fit after the epoch that was shown all the same: the model goes back to it. L-BFGS is
/// looked at after each epoch.
struct Progress {
  const EpochLoss& loss;                    ///< of this epoch, before its update
  const std::vector<std::string>& columns;  ///< names of its values: total, nll, terms…
  std::int64_t epochs;                      ///< epochs asked for
  double seconds;                           ///< of training so far
  ImageModel& model;                        ///< already updated; on a GPU perhaps more than once
  /// After how many epochs a fit that is to converge is expected to have, by how fast it does; nothing while that is not known.
  std::optional<std::int64_t> expected_end = {};
};
using Callback = std::function<CallbackAction(const Progress&)>;  ///< called with what an epoch came to

using Notes = std::map<std::string, std::string>;  ///< text by its key

/// Options of a Trainer.
struct TrainOptions {
  /// Which way parameters follow from gradients.
  TORCH_ARG(OptimizerKind, optimizer) = OptimizerKind::adam;
  /// Step length; for L-BFGS the first trial of the line search, for which 1 is usual.
  TORCH_ARG(double, learning_rate) = 0.3;
  /// What the learning rate of each problem of a batch is multiplied by, in the order of its leading dimensions; empty: 1.
  /// Not for L-BFGS, whose search the problems share. Reports tell the learning rate without it.
  TORCH_ARG(std::vector<double>, rate_factors) = {};
  /// The part of a step that gradient descent keeps in the next one, in [0, 1).
  TORCH_ARG(double, momentum) = 0.0;
  /// How much of its moments Adam keeps.
  TORCH_ARG(Betas, betas) = {};
  /// What Adam and gradient descent add to the gradient for each unit of a parameter, >= 0. Base pixels are drawn to 0
  /// by it, which is not an image of 0 (a softplus mapping makes ln 2 of it). Not for problems with updates of their own.
  TORCH_ARG(double, weight_decay) = 0.0;
  /// Set together with OptimizerKind::own, by `optimizer(OwnOptimizer)`.
  TORCH_ARG(std::optional<OwnOptimizer>, own_optimizer) = std::nullopt;
  /// Factor of the learning rate in each epoch.
  TORCH_ARG(LearningRateSchedule, schedule) = {};
  /// Exactly this many epochs unless a stop criterion, callback or interruption ends the fit before; with a `tolerance` the most
  /// that it may take.
  TORCH_ARG(std::int64_t, epochs) = 500;
  /// Stop when the total of each of the last `stop_window` epochs is within this, relatively, of the present one; 0 is off.
  TORCH_ARG(double, stop_relative) = 0.0;
  /// Epochs that the criterion looks back on, > 0.
  TORCH_ARG(std::int64_t, stop_window) = 10;
  /// Not `each` for L-BFGS.
  TORCH_ARG(StopScope, stop_scope) = StopScope::sum;
  /// A fit has converged when, over the second half of its epochs, the objective fell by no more than this part of its
  /// regularizers' value (of chi^2/2N where there are none), the image changed by no more than twenty times this part (root mean
  /// square, beside its own) and the flux by no more than three times: of pogm and fista from 64 epochs on, of admm, whose losses
  /// may rise, within that part and from 32 on; of adam and sgd, whose losses swing, in the mean of twentieths of the epochs, and
  /// from 200 on. Unset: 1e-3 for pogm, fista and admm, and the others take exactly `epochs`. Not for L-BFGS.
  TORCH_ARG(std::optional<double>, tolerance) = std::nullopt;
  /// Epochs that a fit takes at least before it has converged within its tolerance: for one that begins near its optimum where
  /// fits are slow, as its loss hardly falls until momentum has grown.
  TORCH_ARG(std::int64_t, fewest_epochs) = 0;
  /// Whether warnings of the result are logged, too; not of a fit that others may follow.
  TORCH_ARG(bool, logs_warnings) = true;
  /// Move model, objective and optimiser state there first; nothing is moved when unset.
  TORCH_ARG(std::optional<torch::Device>, device) = std::nullopt;
  /// Cast the model to it first. The likelihood stays as it is: it takes images of float32 and of float64.
  TORCH_ARG(std::optional<torch::Dtype>, dtype) = std::nullopt;
  /// Seed of the torch random generator when a fit starts.
  TORCH_ARG(std::uint64_t, seed) = 0;
  /// The kind of step that is asked for.
  TORCH_ARG(StepKind, step) = StepKind::automatic;
  /// Called after every epoch, one after the other; any of them may end the fit.
  TORCH_ARG(std::vector<Callback>, callbacks) = {};
  /// Whenever so many epochs are done, callbacks see the model as that epoch left it, on whatever device; 0: they see one a few
  /// epochs later on a GPU. 1 is for callbacks that look at the model each time, and makes a GPU wait for them.
  TORCH_ARG(std::int64_t, model_interval) = 0;
  /// Polled after every epoch, on a GPU after those that were fetched at once; true ends the fit with StopReason::interrupted
  /// (signal handlers set it).
  TORCH_ARG(std::function<bool()>, interrupted) = {};

  /// Ranks that fit other channels of the same cube, each with the normaliser of all (Objective::divided_by), in the same epochs:
  /// what decides about the fit (losses, fluxes, ends) is summed over them, so that all decide alike and as one rank with all
  /// channels would. For pogm, fista, adam and sgd, on problems that end together. Callbacks see the same losses on each and must
  /// decide alike. The first rank writes checkpoints of all channels, which any number of ranks goes on from; all must see its
  /// file. Empty: this rank alone.
  TORCH_ARG(std::shared_ptr<Communicator>, ranks) = {};

  /// What its warnings and diagnosis begin with, where there are several fits: "channels 0 to 3"; empty: nothing.
  TORCH_ARG(std::string, label) = {};

  /// What is done where the fit left the realm of finite numbers, or exploded within it.
  TORCH_ARG(OnDivergence, on_divergence) = OnDivergence::warn;

  /// Where checkpoints go (a file; the one before is kept beside it); empty: none are written.
  TORCH_ARG(std::filesystem::path, checkpoint) = {};
  /// Epochs between checkpoints; 0: every 30 seconds. One is always written at the end.
  TORCH_ARG(std::int64_t, checkpoint_interval) = 0;
  /// Continue from the checkpoint when it is there.
  TORCH_ARG(bool, resume) = false;
  /// Stored in the checkpoint and compared when resuming: settings and digest of the input, "key = value". What the
  /// trainer itself knows (optimiser, terms, grid, …) need not be here.
  TORCH_ARG(std::vector<std::string>, fingerprint) = {};
  /// Stored in the checkpoint and not compared: what whoever resumes may want to know.
  TORCH_ARG(Notes, notes) = {};

 public:
  /// Whether problems of a batch differ in learning rate or end.
  bool has_own_updates() const { return !rate_factors_.empty() || stops_each(); }
  /// Whether each problem ends by itself.
  bool stops_each() const { return stop_relative_ > 0 && stop_scope_ == StopScope::each; }
  /// The tolerance within which the fit is to converge; nothing where it takes exactly so many epochs.
  std::optional<double> wanted_tolerance() const;
  /// Takes an optimizer of LibTorch.
  TrainOptions& optimizer(OwnOptimizer own);
  /// Whether the fused and captured steps, which update parameters themselves, know this update.
  bool is_plain_update() const { return optimizer_ != OptimizerKind::own && weight_decay_ == 0; }
  /// Sets the dtype. @throws ValueError for a precision that there is not
  TrainOptions& precision(const Precision& precision);
  /// @throws ValueError for the first setting that is out of its range
  void validate() const;
};

}  // namespace mpol
