#include <mpol_cpp/train/training_state.h>

#include <string>
#include <string_view>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/models/model_image.h>
#include <mpol_cpp/serialize/module_state.h>

namespace mpol::detail {
namespace {

constexpr std::string_view model_prefix = "model.";
constexpr std::string_view likelihood_prefix = "likelihood.";
constexpr std::string_view working_prefix = "likelihood_state.";
constexpr std::string_view optimizer_prefix = "optimizer.";
constexpr std::string_view random_name = "random.cpu";

NamedTensors parameters_of(const torch::nn::Module& module) {
  NamedTensors parameters;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value().defined()) parameters[parameter.key()] = parameter.value().detach();
  }
  return parameters;
}

/// The tensors whose names start with the prefix, without it.
NamedTensors part(const NamedTensors& tensors, std::string_view prefix) {
  NamedTensors found;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = tensor;
  }
  return found;
}

NamedTensors copies_of(NamedTensors tensors) {
  for (auto& [name, tensor] : tensors) tensor = tensor.clone();
  return tensors;
}

}  // namespace

TrainingState capture_state(std::int64_t epochs, ImageModel& model, const Objective& objective, const Step& step) {
  const torch::NoGradGuard no_grad;
  TrainingState state{epochs, {}};
  const auto add = [&](std::string_view prefix, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) state.tensors[std::string(prefix) + name] = tensor;
  };
  add(model_prefix, copies_of(module_state(model.as_module())));
  add(likelihood_prefix, copies_of(parameters_of(objective.likelihood().as_module())));
  add(working_prefix, objective.likelihood().working_state());
  add(optimizer_prefix, step.state());
  state.tensors[std::string(random_name)] = random_state();
  return state;
}

void restore_state(const TrainingState& state, ImageModel& model, const Objective& objective, Step& step) {
  const torch::NoGradGuard no_grad;
  const auto found = state.tensors.find(std::string(random_name));
  if (found == state.tensors.end()) throw FileError(fmt::format("the saved state has no {}", random_name));

  const auto likelihood_saved = part(state.tensors, likelihood_prefix);
  auto likelihood_own = parameters_of(objective.likelihood().as_module());
  for (const auto& [name, tensor] : likelihood_own) {
    const auto saved = likelihood_saved.find(name);
    if (saved == likelihood_saved.end() || saved->second.sizes() != tensor.sizes()) {
      throw FileError(
          fmt::format("the saved state has no parameter {} of shape {} for the likelihood", name, tensor.sizes().vec()));
    }
  }
  const auto before = copies_of(module_state(model.as_module()));
  load_module_state(model.as_module(), part(state.tensors, model_prefix), "the saved state");
  try {  // which check what they are given themselves
    objective.likelihood().load_working_state(part(state.tensors, working_prefix));
    step.load_state(part(state.tensors, optimizer_prefix));
  } catch (...) {
    load_module_state(model.as_module(), before, "the state before");
    throw;
  }
  for (auto& [name, tensor] : likelihood_own) tensor.copy_(likelihood_saved.at(name));
  set_random_state(found->second);
}

}  // namespace mpol::detail
