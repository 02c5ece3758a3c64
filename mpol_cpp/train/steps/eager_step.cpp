#include <mpol_cpp/train/steps/eager_step.h>

#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>

#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/models/model_image.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/train/optimizers/optimizer_state.h>
#include <mpol_cpp/train/optimizers/moment_optimizer.h>
#include <mpol_cpp/train/steps/parameter_sums.h>

namespace mpol {

EagerStep::EagerStep(std::shared_ptr<ImageModel> model, Objective objective, const TrainOptions& options, std::string reason)
    : model_(std::move(model)),
      objective_(std::move(objective)),
      parameters_(trained_parameters(*model_, objective_)),
      kind_(options.optimizer()),
      reason_(std::move(reason)) {
  if (parameters_.empty()) throw ValueError("the model has no parameter that requires a gradient: there is nothing to train");
  if (options.has_own_updates()) {
    own_ = std::make_unique<detail::MomentOptimizer>(options, parameters_, problem_shape(*model_));
    return;
  }
  optimizer_ = detail::make_optimizer(options, parameters_);
}

EagerStep::~EagerStep() = default;

StepReport EagerStep::take(double learning_rate) {
  if (own_) return take_own(learning_rate);
  detail::set_learning_rate(*optimizer_, learning_rate);
  StepReport report;
  optimizer_->step([&] {  // L-BFGS evaluates several times in a step
    optimizer_->zero_grad();
    const auto value = objective_.evaluate(*model_);
    warn_of_idle_terms(value);
    if (!report.losses.defined()) report.losses = value.table();
    const auto total = value.total.dim() == 0 ? value.total : value.total.sum();
    total.backward();
    return total.detach();
  });
  report.parameters_sum = detail::sum_of_parameters(kind_, parameters_);
  return report;
}

StepReport EagerStep::take_own(double learning_rate) {
  for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  const auto value = objective_.evaluate(*model_);
  warn_of_idle_terms(value);
  value.total.sum().backward();
  std::vector<Tensor> gradients;
  for (const auto& parameter : parameters_) gradients.push_back(parameter.tensor.grad());
  own_->set_learning_rate(learning_rate);
  own_->update(gradients);
  own_->count(1);
  return {value.table(), detail::sum_of_parameters(kind_, parameters_)};
}

void EagerStep::warn_of_idle_terms(const ObjectiveValue& value) {
  if (std::exchange(looked_at_terms_, true)) return;
  for (std::size_t i = 0; i < value.terms.size(); ++i) {
    const auto& term = objective_.terms()[i];
    if (term.is_off() || value.terms[i].requires_grad()) continue;
    log_warning(
        fmt::format("term {} does not depend on what is trained and has no effect on the fit: is it detached?", term.name()));
  }
}

void EagerStep::set_stopped(const std::vector<bool>& stopped) {
  if (!own_) throw ValueError("this step was made for problems that end together");
  own_->set_stopped(stopped);
}

NamedTensors EagerStep::state() const {
  if (own_) return own_->state();
  return detail::optimizer_state(kind_, *optimizer_, parameters_);
}

void EagerStep::load_state(const NamedTensors& state) {
  if (own_) return own_->load_state(state);
  optimizer_->zero_grad();
  detail::load_optimizer_state(kind_, *optimizer_, parameters_, state);
}

}  // namespace mpol
