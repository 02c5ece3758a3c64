#include <mpol_cpp/train/steps/make_step.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/train/steps/admm_step.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/device_pogm_step.h>
#include <mpol_cpp/train/steps/eager_step.h>
#include <mpol_cpp/train/steps/engines/fused_objective.h>
#include <mpol_cpp/train/steps/fused_gradient_step.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/steps/pogm_step.h>

namespace mpol {

namespace {

/// One of the two: a fused step, or why there is none.
struct FusedChoice {
  std::unique_ptr<Step> step;
  std::string obstacle;
};

FusedChoice choose_fused(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options,
                         std::string reason) {
  if (!options.is_plain_update()) {
    if (auto obstacle = FusedLoss::obstacle(*model, objective); !obstacle.empty()) return {nullptr, std::move(obstacle)};
    return {std::make_unique<FusedGradientStep>(model, objective, options), {}};
  }
  if (auto obstacle = FusedStep::obstacle(*model, objective, options); !obstacle.empty()) return {nullptr, std::move(obstacle)};
  // On a GPU the step must first agree with autograd there, and be recorded.
  try {
    auto step = std::make_unique<FusedStep>(model, objective, options, std::move(reason));
    if (auto disagreement = step->disagreement(); !disagreement.empty()) return {nullptr, std::move(disagreement)};
    step->record();
    return {std::move(step), {}};
  } catch (const DeviceError& error) {
    return {nullptr, error.what()};
  }
}

}  // namespace

std::unique_ptr<Step> make_step(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options) {
  if (is_proximal(options.optimizer())) {
    if (options.step() == StepKind::captured) {
      throw ValueError(fmt::format("{} looks at each iteration: no captured step; use auto", to_string(options.optimizer())));
    }
    if (options.optimizer() == OptimizerKind::admm) return std::make_unique<AdmmStep>(model, objective, options);
    if (detail::is_on_gpu(*model) && !sum_over(options.ranks()))
      return std::make_unique<DevicePogmStep>(model, objective, options);
    return std::make_unique<PogmStep>(model, objective, options);
  }
  switch (options.step()) {
    case StepKind::automatic: {
      auto choice = choose_fused(model, objective, options, "the fastest one, and it applies");
      if (choice.step) return std::move(choice.step);
      log_info(fmt::format("the steps of this fit are eager, by LibTorch's autograd: {}", choice.obstacle));
      return std::make_unique<EagerStep>(std::move(model), objective, options, choice.obstacle);
    }
    case StepKind::eager:
      return std::make_unique<EagerStep>(std::move(model), objective, options, "asked for");
    case StepKind::captured:
      if (const auto obstacle = CapturedStep::obstacle(*model, objective, options); !obstacle.empty()) {
        throw ValueError(fmt::format("step is captured, but {}: use auto or eager", obstacle));
      }
      return std::make_unique<CapturedStep>(std::move(model), objective, options, "asked for");
    case StepKind::fused: {
      auto choice = choose_fused(model, objective, options, "asked for");
      if (choice.step) return std::move(choice.step);
      throw ValueError(fmt::format("the fused step does not apply: {}; use auto or eager", choice.obstacle));
    }
  }
  throw ValueError("unknown kind of step");
}

}  // namespace mpol
