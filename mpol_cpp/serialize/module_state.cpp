#include <mpol_cpp/serialize/module_state.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

NamedTensors module_state(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value().defined()) state[parameter.key()] = parameter.value().detach();
  }
  for (const auto& buffer : module.named_buffers()) {
    if (buffer.value().defined()) state[buffer.key()] = buffer.value().detach();
  }
  return state;
}

void load_module_state(torch::nn::Module& module, const NamedTensors& state, const std::string& what) {
  const auto own = module_state(module);
  for (const auto& [name, tensor] : own) {
    const auto found = state.find(name);
    if (found == state.end()) throw FileError(fmt::format("{} has no tensor {}, which the model needs", what, name));
    if (found->second.sizes() != tensor.sizes()) {
      throw FileError(
          fmt::format("{} has {} of shape {}, the model's has shape {}: make the model with the same grid, channels "
                      "and problems",
                      what, name, found->second.sizes().vec(), tensor.sizes().vec()));
    }
    if (found->second.scalar_type() != tensor.scalar_type()) {
      throw FileError(fmt::format("{} has {} as {}, the model's is {}: cast the model with .to(dtype) first", what, name,
                                  c10::toString(found->second.scalar_type()), c10::toString(tensor.scalar_type())));
    }
  }
  for (const auto& [name, tensor] : state) {
    if (!own.contains(name)) throw FileError(fmt::format("{} has a tensor {} that the model does not have", what, name));
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) Tensor(tensor).copy_(state.at(name));
}

void save_model(const std::filesystem::path& path, const torch::nn::Module& module) {
  write_safetensors(path, module_state(module), {{"format", "mpol_cpp model"}});
}

void load_model(const std::filesystem::path& path, torch::nn::Module& module) {
  load_module_state(module, read_safetensors(path).tensors, path.string());
}

void load_model(const std::filesystem::path& path, torch::nn::Module& module, torch::Device device) {
  module.to(device);
  load_model(path, module);
}

}  // namespace mpol
