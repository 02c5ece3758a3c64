#include <mpol_cpp/train/steps/captured_step.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused/fused_terms.h>

namespace mpol {
namespace {

constexpr int warm_up_steps = 3;

std::vector<Tensor> parameters_of(const std::vector<detail::Moments>& moments) {
  std::vector<Tensor> parameters;
  parameters.reserve(moments.size());
  for (const auto& each : moments) parameters.push_back(each.parameter.tensor);
  return parameters;
}

/// Some regularizers look at values on the host or make tensors there, and weights of problems come from there.
bool needs_host(const Term& term) {
  return !term.is_off() &&
         (term.weights().size() > 1 || (term.kind() != TermKind::custom && regularizer_of(term.kind()).waits_for_device));
}

/// What no recording can do, on whatever device.
std::string unrecordable(const Objective& objective, const TrainOptions& options) {
  if (options.optimizer() == OptimizerKind::lbfgs) return "L-BFGS searches along its direction on the host";
  if (options.optimizer() == OptimizerKind::own) return "the optimizer is one of the user's own";
  if (options.weight_decay() != 0) return "the update has weight decay, which is LibTorch's optimizers' alone";
  if (const auto reason = objective.likelihood().obstacle_to_recording(); !reason.empty()) return "the likelihood " + reason;
  if (options.has_own_updates()) return "problems of a batch have learning rates or ends of their own";
  return {};
}

}  // namespace

std::string CapturedStep::obstacle(ImageModel& model, const Objective& objective, const TrainOptions& options) {
  if (auto reason = unrecordable(objective, options); !reason.empty()) return reason;
  for (const auto& term : objective.terms()) {
    if (needs_host(term)) return fmt::format("term {} needs the host in each step", term.name());
  }
  for (const auto& parameter : trained_parameters(model, objective)) {
    if (parameter.tensor.is_cuda()) continue;
    return fmt::format("{} is on {}, and steps are recorded on a GPU only", parameter.name, parameter.tensor.device().str());
  }
  return {};
}

CapturedStep::CapturedStep(std::shared_ptr<ImageModel> model, Objective objective, const TrainOptions& options,
                           std::string reason)
    : model_(std::move(model)),
      objective_(std::move(objective)),
      kind_(options.optimizer()),
      momentum_(options.momentum()),
      betas_(options.betas()),
      reason_(std::move(reason)) {
  if (const auto why = unrecordable(objective_, options); !why.empty()) {
    throw ValueError(fmt::format("this step cannot be captured: {}; use the fused or the eager step", why));
  }
  for (auto& parameter : trained_parameters(*model_, objective_)) moments_.push_back({std::move(parameter), {}, {}});
  if (moments_.empty()) throw ValueError("the model has no parameter that requires a gradient: there is nothing to train");
  allocate();
}

void CapturedStep::allocate() {
  const torch::NoGradGuard no_grad;
  const auto is_single = [](const detail::Moments& each) { return each.parameter.tensor.scalar_type() == torch::kFloat32; };
  has_fused_adam_ = kind_ == OptimizerKind::adam && std::all_of(moments_.begin(), moments_.end(), is_single);
  // The fused Adam wants its counter and its rate in float32.
  const auto scalar = torch::TensorOptions(has_fused_adam_ ? torch::kFloat32 : torch::kFloat64).device(device());
  rate_ = at::zeros({}, scalar);
  for (auto& each : moments_) {
    steps_.push_back(at::zeros({}, scalar));
    if (kind_ == OptimizerKind::adam || momentum_ != 0) each.first = at::zeros_like(each.parameter.tensor.detach());
    if (kind_ == OptimizerKind::adam) each.second = at::zeros_like(each.parameter.tensor.detach());
  }
}

StepReport CapturedStep::take(double learning_rate) {
  const torch::NoGradGuard no_grad;
  if (!work_) record();
  places_.check();
  rate_.fill_(learning_rate);
  work_->replay();
  ++taken_;
  for (const auto& each : moments_) each.parameter.tensor.unsafeGetTensorImpl()->bump_version();
  const auto kept = report_.clone();
  const auto columns = static_cast<std::int64_t>(objective_.columns().size());
  return {kept.narrow(0, 0, kept.numel() - 1).view({columns, -1}), kept.select(0, kept.numel() - 1)};
}

void CapturedStep::set_stopped(const std::vector<bool>&) {
  throw ValueError("no problem of a captured step ends before the others: use the fused or the eager step");
}

/// Steps to warm up leave no trace, nor do those of a recording that fails: parameters, moments and counters are put back.
void CapturedStep::record() {
  std::vector<Tensor> changed = steps_;
  for (const auto& [parameter, first, second] : moments_) {
    for (const auto& tensor : {parameter.tensor.detach(), first, second}) {
      if (tensor.defined()) changed.push_back(tensor);
    }
  }
  std::vector<Tensor> before;
  before.reserve(changed.size());
  for (const auto& tensor : changed) before.push_back(tensor.clone());
  const auto put_back = [&] {
    for (std::size_t i = 0; i < changed.size(); ++i) changed[i].copy_(before[i]);
  };
  rate_.fill_(0);
  try {
    work_ = std::make_unique<RecordedWork>(
        device(), [this] { run(); }, warm_up_steps, [this] { run_first(); });
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
  detail::RecordedPlaces places;
  places.add("model.", model_->as_module());
  places.add("likelihood.", objective_.likelihood().as_module());
  places_ = std::move(places);
}

/// Tells the size of the report. Autograd has each parameter's gradient wait for the stream in which it was first used, which a
/// recording in another one cannot hold: from now on that is the present stream.
void CapturedStep::run_first() {
  for (const auto& each : moments_) torch::autograd::impl::set_grad_accumulator(each.parameter.tensor, {});
  run();
}

void CapturedStep::run() {
  std::vector<Tensor> gradients;
  Tensor losses;
  {
    const torch::AutoGradMode with_autograd(true);
    const auto value = objective_.evaluate(*model_);
    losses = value.table();
    gradients = torch::autograd::grad({value.total.sum()}, parameters_of(moments_), {}, /*retain_graph=*/std::nullopt,
                                      /*create_graph=*/false, /*allow_unused=*/true);
  }
  const torch::NoGradGuard no_grad;
  update(gradients);
  Tensor sum = at::zeros({1}, losses.options());
  for (const auto& each : moments_) sum = sum + each.parameter.tensor.detach().sum().to(torch::kFloat64);
  const auto report = at::cat({losses.flatten(), sum});
  if (report_.defined()) report_.copy_(report);
  else report_ = report.clone();
}

void CapturedStep::update(const std::vector<Tensor>& gradients) {
  for (const auto& step : steps_) step.add_(1);
  if (has_fused_adam_) return update_with_fused_adam(gradients);
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    if (kind_ == OptimizerKind::adam) update_by_adam(moments_[i], gradients[i]);
    else update_by_descent(moments_[i], gradients[i]);
  }
}

void CapturedStep::update_with_fused_adam(const std::vector<Tensor>& gradients) {
  std::vector<Tensor> parameters, used, first, second, steps;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    parameters.push_back(moments_[i].parameter.tensor);
    used.push_back(gradients[i]);
    first.push_back(moments_[i].first);
    second.push_back(moments_[i].second);
    steps.push_back(steps_[i]);
  }
  at::_fused_adam_(parameters, used, first, second, {}, steps, rate_, betas_.first, betas_.second, /*weight_decay=*/0,
                   ops::adam_epsilon,
                   /*amsgrad=*/false, /*maximize=*/false);
}

void CapturedStep::update_by_adam(const detail::Moments& moments, const Tensor& gradient) {
  const auto& [parameter, first, second] = moments;
  const auto& step = steps_.front();
  first.mul_(betas_.first).add_(gradient, 1 - betas_.first);
  second.mul_(betas_.second).addcmul_(gradient, gradient, 1 - betas_.second);
  const auto rate = rate_ / (1 - at::pow(betas_.first, step));
  const auto scale = (1 - at::pow(betas_.second, step)).sqrt();
  parameter.tensor.sub_(rate * first / (second.sqrt() / scale + ops::adam_epsilon));
}

void CapturedStep::update_by_descent(const detail::Moments& moments, const Tensor& gradient) {
  const auto& [parameter, first, second] = moments;
  if (first.defined()) first.mul_(momentum_).add_(gradient);
  parameter.tensor.sub_(rate_ * (first.defined() ? first : gradient));
}

NamedTensors CapturedStep::state() const { return detail::save_moments(kind_, moments_, taken_); }

void CapturedStep::load_state(const NamedTensors& state) {
  const torch::NoGradGuard no_grad;
  taken_ = detail::load_moments(kind_, moments_, state);
  for (const auto& step : steps_) step.fill_(taken_);
}

}  // namespace mpol
