#include <mpol_cpp/train/optimizers/problem_optimizer.h>

#include <cmath>

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused/fused_terms.h>

namespace mpol::detail {
namespace {

bool begins_with(torch::IntArrayRef sizes, const std::vector<std::int64_t>& problems) {
  return sizes.size() >= problems.size() && sizes.slice(0, problems.size()) == torch::IntArrayRef(problems);
}

}  // namespace

void check_rate_factors(const TrainOptions& options, std::int64_t problems) {
  const auto count = static_cast<std::int64_t>(options.rate_factors().size());
  if (count == 0 || count == problems) return;
  throw ValueError(fmt::format("there are {} rate_factors, but {} problems: give one for each", count, problems));
}

ProblemOptimizer::ProblemOptimizer(const TrainOptions& options, const std::vector<NamedParameter>& parameters,
                                   const std::vector<std::int64_t>& problems)
    : kind_(options.optimizer()), momentum_(options.momentum()), betas_(options.betas()), problems_(problems) {
  const torch::NoGradGuard no_grad;
  const auto count = c10::multiply_integers(problems);
  if (kind_ == OptimizerKind::lbfgs) throw ValueError("the problems of a batch share the search of lbfgs: use adam or sgd");
  check_rate_factors(options, count);
  const auto device = parameters.front().tensor.device();
  factors_ =
      options.rate_factors().empty() ? at::ones({count}, torch::kFloat64) : at::tensor(options.rate_factors(), torch::kFloat64);
  factors_ = factors_.view(problems).to(device);
  goes_on_ = at::ones(problems, torch::TensorOptions(torch::kBool).device(device));
  for (const auto& parameter : parameters) {
    const auto& tensor = parameter.tensor;
    if (!begins_with(tensor.sizes(), problems)) {
      throw ValueError(
          fmt::format("problems have learning rates or ends of their own, but {} has shape {}, which does not begin "
                      "with the problems' {}: train without them, or one by one",
                      parameter.name, tensor.sizes().vec(), problems));
    }
    const auto zeros = [&] { return at::zeros_like(tensor.detach()); };
    Moments moments{parameter, {}, {}};
    if (kind_ == OptimizerKind::adam || momentum_ != 0) moments.first = zeros();
    if (kind_ == OptimizerKind::adam) moments.second = zeros();
    moments_.push_back(std::move(moments));
  }
}

void ProblemOptimizer::zero_gradients() {
  for (auto& each : moments_) each.parameter.tensor.mutable_grad().reset();
}

void ProblemOptimizer::update(double learning_rate) {
  const torch::NoGradGuard no_grad;
  ++steps_;
  for (const auto& each : moments_) {
    if (each.parameter.tensor.grad().defined()) update(each, learning_rate);
  }
}

void ProblemOptimizer::update(const Moments& moments, double learning_rate) {
  const auto& parameter = moments.parameter.tensor;
  const auto goes_on = over(goes_on_, parameter);
  const auto direction = kind_ == OptimizerKind::adam ? adam_direction(moments, parameter.grad(), goes_on)
                                                      : descent_direction(moments, parameter.grad(), goes_on);
  const auto rate = over(factors_ * learning_rate, parameter).to(parameter.scalar_type());
  parameter.copy_(at::where(goes_on, parameter - rate * direction, parameter));
}

Tensor ProblemOptimizer::adam_direction(const Moments& moments, const Tensor& gradient, const Tensor& goes_on) const {
  const auto& [parameter, first, second] = moments;
  const auto [beta1, beta2] = betas_;
  first.copy_(at::where(goes_on, beta1 * first + (1 - beta1) * gradient, first));
  second.copy_(at::where(goes_on, beta2 * second + (1 - beta2) * gradient.square(), second));
  const auto steps = static_cast<double>(steps_);
  const double scale = 1 - std::pow(beta1, steps), second_scale = std::sqrt(1 - std::pow(beta2, steps));
  return first / scale / (second.sqrt() / second_scale + ops::adam_epsilon);
}

Tensor ProblemOptimizer::descent_direction(const Moments& moments, const Tensor& gradient, const Tensor& goes_on) const {
  if (!moments.first.defined()) return gradient;
  moments.first.copy_(at::where(goes_on, momentum_ * moments.first + gradient, moments.first));
  return moments.first;
}

Tensor ProblemOptimizer::over(const Tensor& of_problems, const Tensor& parameter) const {
  auto shape = problems_;
  shape.resize(static_cast<std::size_t>(parameter.dim()), 1);
  return of_problems.view(shape);
}

void ProblemOptimizer::set_stopped(const std::vector<bool>& stopped) {
  if (static_cast<std::int64_t>(stopped.size()) != goes_on_.numel()) {
    throw ValueError(fmt::format("{} flags for {} problems: give one for each", stopped.size(), goes_on_.numel()));
  }
  auto flags = at::ones({goes_on_.numel()}, torch::kBool);
  for (std::size_t i = 0; i < stopped.size(); ++i) flags.mutable_data_ptr<bool>()[i] = !stopped[i];
  goes_on_.copy_(flags.view(problems_));
}

}  // namespace mpol::detail
