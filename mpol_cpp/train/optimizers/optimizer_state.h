#pragma once

#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/train/options/train_options.h>

namespace torch::optim {
class Optimizer;
}

namespace mpol::detail {

/// LibTorch's optimiser for these options, or the user's own.
/// @throws ValueError where the user's own is none, or not one for these parameters
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        const std::vector<NamedParameter>& parameters);

/// Sets the rate of all groups of parameters.
void set_learning_rate(torch::optim::Optimizer& optimizer, double learning_rate);

/// The state of one of LibTorch's optimisers by name, in tensors that later steps leave alone:
///   adam   PARAMETER.step, PARAMETER.exp_avg, PARAMETER.exp_avg_sq
///   sgd    PARAMETER.momentum_buffer
///   own    archive: what the optimizer's own save() writes, (n) uint8
///   lbfgs  func_evals, n_iter, t, prev_loss, d, H_diag, prev_flat_grad, {old_dirs,old_stps,ro}.0000, …
/// A parameter that has taken no step yet has none.
NamedTensors optimizer_state(OptimizerKind kind, torch::optim::Optimizer& optimizer,
                             const std::vector<NamedParameter>& parameters);

/// Replaces an optimiser's state by one of those, from any device.
/// @throws FileError when names or shapes do not match the parameters
void load_optimizer_state(OptimizerKind kind, torch::optim::Optimizer& optimizer, const std::vector<NamedParameter>& parameters,
                          const NamedTensors& state);

}  // namespace mpol::detail
