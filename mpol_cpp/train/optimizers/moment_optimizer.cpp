#include <mpol_cpp/train/optimizers/moment_optimizer.h>

#include <algorithm>

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
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

MomentOptimizer::MomentOptimizer(const TrainOptions& options, const std::vector<NamedParameter>& parameters,
                                 const std::vector<std::int64_t>& problems)
    : kind_(options.optimizer()), momentum_(options.momentum()), betas_(options.betas()), problems_(problems) {
  const torch::NoGradGuard no_grad;
  if (kind_ == OptimizerKind::lbfgs) throw ValueError("the problems of a batch share the search of lbfgs: use adam or sgd");
  const auto is_single = [](const NamedParameter& each) { return each.tensor.scalar_type() == torch::kFloat32; };
  has_fused_adam_ =
      kind_ == OptimizerKind::adam && problems.empty() && std::all_of(parameters.begin(), parameters.end(), is_single);
  // The fused Adam wants its counter and its rate in float32.
  const auto numbers =
      torch::TensorOptions(has_fused_adam_ ? torch::kFloat32 : torch::kFloat64).device(parameters.front().tensor.device());
  factors_ = at::ones(problems, numbers);
  if (!problems.empty()) {
    check_rate_factors(options, c10::multiply_integers(problems));
    if (!options.rate_factors().empty()) factors_.copy_(at::tensor(options.rate_factors(), torch::kFloat64).view(problems));
    goes_on_ = at::ones(problems, numbers.dtype(torch::kBool));
  }
  rate_ = at::zeros_like(factors_);
  counter_ = at::zeros({}, numbers);
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

void MomentOptimizer::set_learning_rate(double learning_rate) {
  const torch::NoGradGuard no_grad;
  if (has_own_updates()) rate_.copy_(factors_ * learning_rate);
  else rate_.fill_(learning_rate);
}

void MomentOptimizer::update(const std::vector<Tensor>& gradients) {
  const torch::NoGradGuard no_grad;
  counter_.add_(1);
  if (has_fused_adam_) return update_with_fused_adam(gradients);
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    if (gradients[i].defined()) update(moments_[i], gradients[i]);
  }
}

void MomentOptimizer::update_with_fused_adam(const std::vector<Tensor>& gradients) {
  std::vector<Tensor> parameters, used, first, second;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    parameters.push_back(moments_[i].parameter.tensor);
    used.push_back(gradients[i]);
    first.push_back(moments_[i].first);
    second.push_back(moments_[i].second);
  }
  const std::vector<Tensor> counters(parameters.size(), counter_);
  at::_fused_adam_(parameters, used, first, second, {}, counters, rate_, betas_.first, betas_.second, /*weight_decay=*/0,
                   ops::adam_epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

void MomentOptimizer::update(const Moments& moments, const Tensor& gradient) {
  const auto& parameter = moments.parameter.tensor;
  const auto direction = kind_ == OptimizerKind::adam ? adam_direction(moments, gradient) : descent_direction(moments, gradient);
  const auto rate = over(rate_, parameter).to(parameter.scalar_type());
  parameter.copy_(kept_where_stopped(parameter - rate * direction, parameter));
}

Tensor MomentOptimizer::adam_direction(const Moments& moments, const Tensor& gradient) const {
  const auto& [parameter, first, second] = moments;
  const auto [beta1, beta2] = betas_;
  first.copy_(kept_where_stopped(beta1 * first + (1 - beta1) * gradient, first));
  second.copy_(kept_where_stopped(beta2 * second + (1 - beta2) * gradient.square(), second));
  const auto scale = 1 - at::pow(beta1, counter_), second_scale = (1 - at::pow(beta2, counter_)).sqrt();
  return first / scale / (second.sqrt() / second_scale + ops::adam_epsilon);
}

Tensor MomentOptimizer::descent_direction(const Moments& moments, const Tensor& gradient) const {
  if (!moments.first.defined()) return gradient;
  moments.first.copy_(kept_where_stopped(momentum_ * moments.first + gradient, moments.first));
  return moments.first;
}

Tensor MomentOptimizer::kept_where_stopped(const Tensor& value, const Tensor& before) const {
  return has_own_updates() ? at::where(over(goes_on_, before), value, before) : value;
}

Tensor MomentOptimizer::over(const Tensor& of_problems, const Tensor& parameter) const {
  auto shape = problems_;
  shape.resize(static_cast<std::size_t>(parameter.dim()), 1);
  return of_problems.view(shape);
}

std::vector<Tensor> MomentOptimizer::changed() const {
  std::vector<Tensor> changed = {counter_};
  for (const auto& [parameter, first, second] : moments_) {
    for (const auto& tensor : {parameter.tensor.detach(), first, second}) {
      if (tensor.defined()) changed.push_back(tensor);
    }
  }
  return changed;
}

void MomentOptimizer::set_stopped(const std::vector<bool>& stopped) {
  const auto problems = has_own_updates() ? goes_on_.numel() : 0;
  if (static_cast<std::int64_t>(stopped.size()) != problems) {
    throw ValueError(fmt::format("{} flags for {} problems: give one for each", stopped.size(), problems));
  }
  auto flags = at::ones({problems}, torch::kBool);
  for (std::size_t i = 0; i < stopped.size(); ++i) flags.mutable_data_ptr<bool>()[i] = !stopped[i];
  goes_on_.copy_(flags.view(problems_));
}

void MomentOptimizer::load_state(const NamedTensors& state) {
  const torch::NoGradGuard no_grad;
  steps_ = load_moments(kind_, moments_, state);
  counter_.fill_(steps_);
}

}  // namespace mpol::detail
