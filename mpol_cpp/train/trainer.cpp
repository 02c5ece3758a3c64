#include <mpol_cpp/train/trainer.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/train/fit.h>

namespace mpol {

std::string to_string(StopReason reason) {
  switch (reason) {
    case StopReason::epochs:
      return "epochs";
    case StopReason::converged:
      return "converged";
    case StopReason::callback:
      return "callback";
    case StopReason::interrupted:
      return "interrupted";
    case StopReason::diverged:
      return "diverged";
  }
  throw ValueError(fmt::format("{} is not a reason to stop", static_cast<int>(reason)));
}

Trainer::Trainer(std::shared_ptr<ImageModel> model, Objective objective, TrainOptions options)
    : model_(std::move(model)), objective_(std::move(objective)), options_(std::move(options)) {
  if (!model_) throw ValueError("a trainer needs a model");
  options_.validate();
  objective_.check_grid(model_->coords());
}

TrainResult Trainer::fit() {
  auto result = detail::Fit(model_, objective_, options_).run();
  if (const auto& label = options_.label(); !label.empty()) {
    if (!result.diagnosis.empty()) result.diagnosis = label + ": " + result.diagnosis;
    for (auto& warning : result.warnings) warning.insert(0, label + ": ");
  }
  if (options_.logs_warnings()) {
    for (const auto& warning : result.warnings) log_warning(warning);
  }
  if (result.stop_reason != StopReason::diverged) return result;
  if (options_.on_divergence() == OnDivergence::error) throw DivergedError(result.diagnosis);
  if (options_.on_divergence() == OnDivergence::warn) log_warning("the fit has diverged: " + result.diagnosis);
  return result;
}

}  // namespace mpol
