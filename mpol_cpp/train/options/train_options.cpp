#include <mpol_cpp/train/options/train_options.h>

#include <cmath>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

std::string to_string(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::lbfgs:
      return "lbfgs";
    case OptimizerKind::pogm:
      return "pogm";
    case OptimizerKind::fista:
      return "fista";
    case OptimizerKind::admm:
      return "admm";
    case OptimizerKind::own:
      return "own";
  }
  throw ValueError(fmt::format("{} is not an optimiser", static_cast<int>(kind)));
}

std::string to_string(StepKind kind) {
  switch (kind) {
    case StepKind::automatic:
      return "auto";
    case StepKind::eager:
      return "eager";
    case StepKind::captured:
      return "captured";
    case StepKind::fused:
      return "fused";
  }
  throw ValueError(fmt::format("{} is not a kind of step", static_cast<int>(kind)));
}

std::string to_string(StopScope scope) {
  switch (scope) {
    case StopScope::sum:
      return "sum";
    case StopScope::each:
      return "each";
  }
  throw ValueError(fmt::format("{} is nothing that the stop criterion looks at", static_cast<int>(scope)));
}

TrainOptions& TrainOptions::precision(const Precision& precision) {
  precision.validate();
  return dtype(precision.real);
}

TrainOptions& TrainOptions::optimizer(OwnOptimizer own) {
  optimizer_ = OptimizerKind::own;
  own_optimizer_ = std::move(own);
  return *this;
}

std::optional<double> TrainOptions::wanted_tolerance() const {
  constexpr double usual = 1e-3;
  return tolerance_ || !is_proximal(optimizer_) ? tolerance_ : usual;
}

void TrainOptions::validate() const {
  const auto require = [](bool holds, const char* setting, auto value, const char* limit) {
    if (!holds) throw ValueError(fmt::format("{} is {}; it must be {}", setting, value, limit));
  };
  require(learning_rate_ > 0 && std::isfinite(learning_rate_), "learning_rate", learning_rate_, "finite and greater than 0");
  for (const double factor : rate_factors_) {
    require(factor > 0 && std::isfinite(factor), "rate_factors", factor, "finite and greater than 0");
  }
  require(momentum_ >= 0 && momentum_ < 1, "momentum", momentum_, "in [0, 1)");
  require(betas_.first >= 0 && betas_.first < 1, "the first of betas", betas_.first, "in [0, 1)");
  require(betas_.second >= 0 && betas_.second < 1, "the second of betas", betas_.second, "in [0, 1)");
  require(weight_decay_ >= 0 && std::isfinite(weight_decay_), "weight_decay", weight_decay_, "finite and >= 0");
  require(epochs_ >= 1, "epochs", epochs_, "at least 1");
  require(stop_relative_ >= 0 && std::isfinite(stop_relative_), "stop_relative", stop_relative_, "finite and >= 0");
  if (tolerance_) require(*tolerance_ > 0 && *tolerance_ < 1, "tolerance", *tolerance_, "above 0 and below 1");
  require(fewest_epochs_ >= 0, "fewest_epochs", fewest_epochs_, ">= 0");
  require(stop_window_ >= 1, "stop_window", stop_window_, "at least 1");
  require(model_interval_ >= 0, "model_interval", model_interval_, ">= 0");
  require(checkpoint_interval_ >= 0, "checkpoint_interval", checkpoint_interval_, ">= 0");
  if (momentum_ > 0 && optimizer_ != OptimizerKind::sgd) {
    throw ValueError(
        fmt::format("momentum is {}, but the optimiser is {}: only sgd has momentum", momentum_, to_string(optimizer_)));
  }
  if (weight_decay_ > 0 && optimizer_ != OptimizerKind::adam && optimizer_ != OptimizerKind::sgd) {
    throw ValueError(fmt::format("weight_decay is {}, but the optimiser is {}: only adam and sgd have one here", weight_decay_,
                                 to_string(optimizer_)));
  }
  if ((optimizer_ == OptimizerKind::own) != (own_optimizer_ && own_optimizer_->make)) {
    throw ValueError("an optimizer of one's own and OptimizerKind::own go together: set both by optimizer(OwnOptimizer)");
  }
  if (!is_plain_update() && has_own_updates()) {
    throw ValueError("problems with learning rates or ends of their own take adam or sgd, without weight_decay");
  }
  if (optimizer_ == OptimizerKind::lbfgs && (!rate_factors_.empty() || stop_scope_ == StopScope::each)) {
    throw ValueError(
        fmt::format("the problems of a batch share the search of lbfgs: no rate_factors (there are {}) and no stop_scope each "
                    "with it; use adam or sgd, or fit the problems one by one",
                    rate_factors_.size()));
  }
  if (is_proximal(optimizer_) && (has_own_updates() || stop_relative_ > 0)) {
    throw ValueError(fmt::format("{} has no learning rate and a stop of its own: no rate_factors and no stop_relative with it",
                                 to_string(optimizer_)));
  }
  if (tolerance_ && (optimizer_ == OptimizerKind::lbfgs || stop_relative_ > 0)) {
    throw ValueError("tolerance ends a fit of pogm, fista, admm, adam or sgd: not with lbfgs, and not beside stop_relative");
  }
  if (ranks_ && !ranks_->is_alone()) {
    const bool is_known = optimizer_ == OptimizerKind::adam || optimizer_ == OptimizerKind::sgd ||
                          optimizer_ == OptimizerKind::pogm || optimizer_ == OptimizerKind::fista;
    if (!is_known || stops_each()) {
      throw ValueError(
          fmt::format("{} with stop_scope {} does not fit channels on {} ranks: use pogm, fista, adam or sgd, whose problems end "
                      "together",
                      to_string(optimizer_), to_string(stop_scope_), ranks_->size()));
    }
  }
  if (resume_ && checkpoint_.empty()) throw ValueError("resume is asked for without a checkpoint: name the checkpoint file");
  if (!schedule_.factor) throw ValueError("the schedule has no factor function");
}

}  // namespace mpol
