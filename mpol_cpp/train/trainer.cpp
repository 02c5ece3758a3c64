#include <mpol_cpp/train/trainer.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
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
}

TrainResult Trainer::fit() { return detail::Fit(model_, objective_, options_).run(); }

}  // namespace mpol
