#include <mpol_cpp/train/steps/fused_gradient_step.h>

#include <utility>

#include <torch/optim/optimizer.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/optimizers/optimizer_state.h>
#include <mpol_cpp/train/steps/parameter_sums.h>

namespace mpol {

FusedGradientStep::FusedGradientStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
    : model_(std::move(model)),
      loss_(*model_, objective),
      parameters_(trained_parameters(*model_, objective)),
      kind_(options.optimizer()),
      optimizer_(detail::make_optimizer(options, parameters_)) {}

FusedGradientStep::~FusedGradientStep() = default;

StepReport FusedGradientStep::take(double learning_rate) {
  detail::set_learning_rate(*optimizer_, learning_rate);
  StepReport report;
  optimizer_->step([&] {  // some evaluate several times in a step
    optimizer_->zero_grad();
    const auto total = loss_(model_->base()).sum();
    if (!report.losses.defined()) report.losses = loss_.losses();
    total.backward();
    return total.detach();
  });
  report.parameters_sum = detail::sum_of_parameters(kind_, parameters_);
  return report;
}

void FusedGradientStep::set_stopped(const std::vector<bool>&) {
  throw ValueError("this step was made for problems that end together");
}

std::string FusedGradientStep::reason() const { return "LibTorch's optimizer on the gradient of the fused passes"; }

NamedTensors FusedGradientStep::state() const { return detail::optimizer_state(kind_, *optimizer_, parameters_); }

void FusedGradientStep::load_state(const NamedTensors& state) {
  optimizer_->zero_grad();
  detail::load_optimizer_state(kind_, *optimizer_, parameters_, state);
}

}  // namespace mpol
