#include <mpol_cpp/objective/trained_parameters.h>

namespace mpol {

std::vector<NamedParameter> trained_parameters(ImageModel& model, const Objective& objective) {
  std::vector<NamedParameter> parameters;
  const auto add = [&](const std::string& prefix, const torch::nn::Module& module) {
    for (const auto& parameter : module.named_parameters()) {
      if (parameter.value().defined() && parameter.value().requires_grad()) {
        parameters.push_back({prefix + parameter.key(), parameter.value()});
      }
    }
  };
  add("model.", model.as_module());
  add("likelihood.", objective.likelihood().as_module());
  return parameters;
}

}  // namespace mpol
