#pragma once

#include <filesystem>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace torch::optim {
class Optimizer;
}

namespace mpol {

/// Saves the state of the optimiser of one's own loop (Adam, SGD or L-BFGS of LibTorch: moments, steps, history) as a safetensors
/// file, from any device. Beside the model (save_model) it is all that a loop needs to go on as if it had not ended. Learning
/// rate and other options are not in it: they are those of the optimiser that it is loaded into.
/// @param model  whose parameters it trains, by whose names the state is kept
/// @throws ValueError for another optimiser, or one with parameters that the model does not have; FileError
void save_optimizer(const std::filesystem::path& path, torch::optim::Optimizer& optimizer, const torch::nn::Module& model);
/// Loads it into an optimiser of the same kind, made for the model's parameters; the state goes to the parameters' devices.
/// @throws FileError when the file is damaged, of another kind of optimiser or of another model; ValueError as before
void load_optimizer(const std::filesystem::path& path, torch::optim::Optimizer& optimizer, const torch::nn::Module& model);

/// The same of a model's holder.
template <typename Impl>
void save_optimizer(const std::filesystem::path& path, torch::optim::Optimizer& optimizer,
                    const torch::nn::ModuleHolder<Impl>& model) {
  save_optimizer(path, optimizer, static_cast<const torch::nn::Module&>(*model.ptr()));
}
/// The same of a model's holder.
template <typename Impl>
void load_optimizer(const std::filesystem::path& path, torch::optim::Optimizer& optimizer,
                    const torch::nn::ModuleHolder<Impl>& model) {
  load_optimizer(path, optimizer, static_cast<const torch::nn::Module&>(*model.ptr()));
}

}  // namespace mpol
