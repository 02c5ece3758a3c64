#pragma once

#include <filesystem>
#include <string>

#include <torch/nn/module.h>

#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {

/// Parameters and buffers of a module and its children by name ("bcube.base_cube"); they share the module's memory.
NamedTensors module_state(const torch::nn::Module& module);

/// Copies values into a module's parameters and buffers, whichever device they are on.
/// @param what  names the source in messages, e.g. a file
/// @throws FileError when a name is missing or unknown, or a shape or dtype differs; the module is then unchanged
void load_module_state(torch::nn::Module& module, const NamedTensors& state, const std::string& what);

/// Saves a module's state as a safetensors file, with what it belongs to (LabeledState: the grid of models and likelihoods,
/// the baselines of likelihoods of loose visibilities) in the metadata. @throws FileError
void save_model(const std::filesystem::path& path, const torch::nn::Module& module);
/// The same of a module's holder.
template <typename Impl>
void save_model(const std::filesystem::path& path, const torch::nn::ModuleHolder<Impl>& module) {
  save_model(path, *module);
}

/// Loads what save_model wrote into a module of the same shape and grid, which stays on its device or moves to another one
/// first; of a checkpoint that a Trainer wrote, the model.
/// @throws FileError when the file is damaged or is of another model, grid or set of baselines; the module is then unchanged
void load_model(const std::filesystem::path& path, torch::nn::Module& module);
/// The same onto a device: the module moves there first.
void load_model(const std::filesystem::path& path, torch::nn::Module& module, torch::Device device);
/// The same into a module's holder.
template <typename Impl, typename... Device>
void load_model(const std::filesystem::path& path, const torch::nn::ModuleHolder<Impl>& module, Device... device) {
  load_model(path, static_cast<torch::nn::Module&>(*module.ptr()), device...);
}

}  // namespace mpol
