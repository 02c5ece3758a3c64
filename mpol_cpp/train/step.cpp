#include <mpol_cpp/train/step.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/eager_step.h>
#include <mpol_cpp/train/fused_step.h>

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

std::unique_ptr<Step> make_step(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options) {
  switch (options.step()) {
    case StepKind::automatic:
      if (const auto obstacle = FusedStep::obstacle(*model, objective, options); !obstacle.empty()) {
        return std::make_unique<EagerStep>(std::move(model), objective, options, obstacle);
      }
      return std::make_unique<FusedStep>(std::move(model), objective, options, "it applies");
    case StepKind::eager:
      return std::make_unique<EagerStep>(std::move(model), objective, options, "asked for");
    case StepKind::captured:
      throw ValueError("step is captured, but this build records no CUDA graphs: use auto or eager");
    case StepKind::fused:
      return std::make_unique<FusedStep>(std::move(model), objective, options, "asked for");
  }
  throw ValueError("unknown kind of step");
}

}  // namespace mpol
