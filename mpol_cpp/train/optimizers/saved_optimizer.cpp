#include <mpol_cpp/train/optimizers/saved_optimizer.h>

#include <algorithm>
#include <string>
#include <vector>

#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/train/optimizers/optimizer_state.h>

namespace mpol {
namespace {

constexpr const char* optimizer_format = "mpol_cpp optimizer";

OptimizerKind kind_of(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const torch::optim::Adam*>(&optimizer) != nullptr) return OptimizerKind::adam;
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer) != nullptr) return OptimizerKind::sgd;
  if (dynamic_cast<const torch::optim::LBFGS*>(&optimizer) != nullptr) return OptimizerKind::lbfgs;
  throw ValueError("the state of this optimiser is not known: Adam, SGD and L-BFGS of LibTorch are saved and loaded");
}

/// The parameters that an optimiser trains, in its order, by their names in the model.
std::vector<NamedParameter> parameters_of(const torch::optim::Optimizer& optimizer, const torch::nn::Module& model) {
  const auto named = model.named_parameters();
  std::vector<NamedParameter> parameters;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto own =
          std::find_if(named.begin(), named.end(), [&](const auto& item) { return item.value().is_same(parameter); });
      if (own == named.end()) {
        throw ValueError(
            fmt::format("the optimiser trains a parameter of shape {} that is none of the model's: give the model "
                        "that it was made for",
                        parameter.sizes().vec()));
      }
      parameters.push_back({own->key(), parameter});
    }
  }
  if (parameters.empty()) throw ValueError("the optimiser trains no parameter");
  return parameters;
}

}  // namespace

void save_optimizer(const std::filesystem::path& path, torch::optim::Optimizer& optimizer, const torch::nn::Module& model) {
  const auto kind = kind_of(optimizer);
  write_safetensors(path, detail::optimizer_state(kind, optimizer, parameters_of(optimizer, model)),
                    {{"format", optimizer_format}, {"optimizer", to_string(kind)}});
}

void load_optimizer(const std::filesystem::path& path, torch::optim::Optimizer& optimizer, const torch::nn::Module& model) {
  const auto kind = kind_of(optimizer);
  const auto parameters = parameters_of(optimizer, model);
  auto file = read_safetensors(path);
  if (file.metadata["format"] != optimizer_format) {
    throw FileError(fmt::format("{} holds no optimiser's state: give a file of save_optimizer", path.string()));
  }
  if (file.metadata["optimizer"] != to_string(kind)) {
    throw FileError(fmt::format("{} is of {}, the optimiser here is {}: make the one that was saved", path.string(),
                                file.metadata["optimizer"], to_string(kind)));
  }
  detail::load_optimizer_state(kind, optimizer, parameters, file.tensors);
}

}  // namespace mpol
