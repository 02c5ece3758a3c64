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

/// Saves a module's state as a safetensors file. @throws FileError
void save_model(const std::filesystem::path& path, const torch::nn::Module& module);
template <typename Impl>
void save_model(const std::filesystem::path& path, const torch::nn::ModuleHolder<Impl>& module) {
  save_model(path, *module);
}

/// Loads what save_model wrote into a module of the same shape, which stays on its device.
/// @throws FileError when the file is damaged or is of another model
void load_model(const std::filesystem::path& path, torch::nn::Module& module);
template <typename Impl>
void load_model(const std::filesystem::path& path, const torch::nn::ModuleHolder<Impl>& module) {
  load_model(path, *module);
}

/// The same, and moves the module to a device first.
template <typename ModuleOrHolder>
void load_model(const std::filesystem::path& path, ModuleOrHolder&& module, torch::Device device) {
  if constexpr (requires { module->to(device); }) module->to(device);
  else module.to(device);
  load_model(path, module);
}

}  // namespace mpol
