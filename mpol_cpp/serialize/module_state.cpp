#include <mpol_cpp/serialize/module_state.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/labeled_state.h>

namespace mpol {
namespace {

constexpr std::string_view label_prefix = "label.";
constexpr std::string_view checkpoint_prefix = "state.model.";  // of a model within a training run

/// Adds what a module's tensors belong to, and its children's, by name: "label.cell_size", "label.CHILD.npix", ….
void add_labels(const torch::nn::Module& module, const std::string& prefix, Metadata& labels) {
  if (const auto* labeled = dynamic_cast<const LabeledState*>(&module)) {
    for (const auto& [name, words] : labeled->state_labels()) labels[prefix + name] = words;
  }
  for (const auto& child : module.named_children()) add_labels(*child.value(), prefix + child.key() + ".", labels);
}

Metadata labels_of(const torch::nn::Module& module) {
  Metadata labels;
  add_labels(module, std::string(label_prefix), labels);
  return labels;
}

/// @throws FileError naming the first label that differs; files of earlier versions have none
void check_labels(const Metadata& saved, const Metadata& own, const std::string& what) {
  for (const auto& [name, words] : own) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->second == words) continue;
    throw FileError(fmt::format("{} is of {} {}, the model of {}: make the model alike", what, name.substr(label_prefix.size()),
                                found->second, words));
  }
}

/// The model of a checkpoint, as save_model would have written it.
SafetensorsFile model_of_checkpoint(SafetensorsFile checkpoint) {
  SafetensorsFile model;
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (name.starts_with(checkpoint_prefix)) model.tensors[name.substr(checkpoint_prefix.size())] = std::move(tensor);
  }
  for (const std::string name : {"cell_size", "npix"}) {
    const auto found = checkpoint.metadata.find("setting." + name);
    if (found != checkpoint.metadata.end()) model.metadata[std::string(label_prefix) + name] = found->second;
  }
  return model;
}

SafetensorsFile read_model(const std::filesystem::path& path) {
  auto file = read_safetensors(path);
  const auto format = file.metadata.find("format");
  const bool is_checkpoint = format != file.metadata.end() && format->second == "mpol_cpp checkpoint";
  return is_checkpoint ? model_of_checkpoint(std::move(file)) : file;
}

}  // namespace

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
  auto metadata = labels_of(module);
  metadata["format"] = "mpol_cpp model";
  write_safetensors(path, module_state(module), metadata);
}

void load_model(const std::filesystem::path& path, torch::nn::Module& module) {
  const auto file = read_model(path);
  check_labels(file.metadata, labels_of(module), path.string());
  load_module_state(module, file.tensors, path.string());
}

void load_model(const std::filesystem::path& path, torch::nn::Module& module, torch::Device device) {
  module.to(device);
  load_model(path, module);
}

}  // namespace mpol
