#include <mpol_cpp/train/eager_step.h>

#include <utility>

#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/optimizer_state.h>

namespace mpol {
namespace {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options, std::vector<Tensor> parameters) {
  const double learning_rate = options.learning_rate();
  switch (options.optimizer()) {
    case OptimizerKind::adam:
      return std::make_unique<torch::optim::Adam>(std::move(parameters), torch::optim::AdamOptions(learning_rate));
    case OptimizerKind::sgd:
      return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                                 torch::optim::SGDOptions(learning_rate).momentum(options.momentum()));
    case OptimizerKind::lbfgs:
      // No tolerances of its own: the trainer's stop criterion says when a fit has converged.
      return std::make_unique<torch::optim::LBFGS>(
          std::move(parameters),
          torch::optim::LBFGSOptions(learning_rate).line_search_fn("strong_wolfe").tolerance_grad(0).tolerance_change(0));
  }
  throw ValueError("unknown optimiser");
}

Tensor sum_of(const std::vector<NamedParameter>& parameters) {
  const torch::NoGradGuard no_grad;
  Tensor sum;
  for (const auto& parameter : parameters) {
    const auto own = parameter.tensor.sum().to(torch::kFloat64);
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

}  // namespace

EagerStep::EagerStep(std::shared_ptr<ImageModel> model, Objective objective, const TrainOptions& options, std::string reason)
    : model_(std::move(model)),
      objective_(std::move(objective)),
      parameters_(trained_parameters(*model_, objective_)),
      kind_(options.optimizer()),
      reason_(std::move(reason)) {
  if (parameters_.empty()) throw ValueError("the model has no parameter that requires a gradient: there is nothing to train");
  std::vector<Tensor> tensors;
  for (const auto& parameter : parameters_) tensors.push_back(parameter.tensor);
  optimizer_ = make_optimizer(options, std::move(tensors));
}

EagerStep::~EagerStep() = default;

StepReport EagerStep::take(double learning_rate) {
  optimizer_->param_groups().front().options().set_lr(learning_rate);
  StepReport report;
  optimizer_->step([&] {  // L-BFGS evaluates several times in a step
    optimizer_->zero_grad();
    const auto value = objective_.evaluate(*model_);
    if (!report.losses.defined()) report.losses = value.table();
    const auto total = value.total.dim() == 0 ? value.total : value.total.sum();
    total.backward();
    return total.detach();
  });
  report.parameters_sum = sum_of(parameters_);
  return report;
}

NamedTensors EagerStep::state() const { return detail::optimizer_state(kind_, *optimizer_, parameters_); }

void EagerStep::load_state(const NamedTensors& state) {
  optimizer_->zero_grad();
  detail::load_optimizer_state(kind_, *optimizer_, parameters_, state);
}

}  // namespace mpol
