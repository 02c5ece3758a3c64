#include <mpol_cpp/train/steps/captured_step.h>

#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr int warm_up_steps = 3;

/// Some regularizers look at values on the host or make tensors there, and weights of problems come from there.
bool needs_host(const Term& term) {
  return !term.is_off() && (term.weights().size() > 1 || !term.channel_factors().empty() ||
                            (term.kind() != TermKind::custom && regularizer_of(term.kind()).waits_for_device));
}

/// What no recording can do, on whatever device.
std::string unrecordable(const Objective& objective, const TrainOptions& options) {
  if (options.optimizer() == OptimizerKind::lbfgs) return "L-BFGS searches along its direction on the host";
  if (options.optimizer() == OptimizerKind::own) return "the optimizer is one of the user's own";
  if (options.weight_decay() != 0) return "the update has weight decay, which is LibTorch's optimizers' alone";
  if (const auto reason = objective.likelihood().obstacle_to_recording(); !reason.empty()) return "the likelihood " + reason;
  if (objective.neighbors()) return "terms join channels of several ranks";
  if (options.has_own_updates()) return "problems of a batch have learning rates or ends of their own";
  return {};
}

/// The parameters that a step trains. @throws ValueError where it cannot be recorded, or there is nothing to train
std::vector<NamedParameter> recordable(ImageModel& model, const Objective& objective, const TrainOptions& options) {
  if (const auto why = unrecordable(objective, options); !why.empty()) {
    throw ValueError(fmt::format("this step cannot be captured: {}; use the fused or the eager step", why));
  }
  auto parameters = trained_parameters(model, objective);
  if (parameters.empty()) throw ValueError("the model has no parameter that requires a gradient: there is nothing to train");
  return parameters;
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
      reason_(std::move(reason)),
      parameters_(recordable(*model_, objective_, options)),
      optimizer_(options, parameters_, {}) {}

StepReport CapturedStep::take(double learning_rate) {
  const torch::NoGradGuard no_grad;
  if (!work_) record();
  places_.check();
  optimizer_.set_learning_rate(learning_rate);
  work_->replay();
  optimizer_.count(1);
  for (const auto& each : parameters_) each.tensor.unsafeGetTensorImpl()->bump_version();
  const auto kept = report_.clone();
  const auto columns = static_cast<std::int64_t>(objective_.columns().size());
  return {kept.narrow(0, 0, kept.numel() - 1).view({columns, -1}), kept.select(0, kept.numel() - 1)};
}

void CapturedStep::set_stopped(const std::vector<bool>&) {
  throw ValueError("no problem of a captured step ends before the others: use the fused or the eager step");
}

/// Steps to warm up leave no trace, nor do those of a recording that fails: parameters, moments and counters are put back.
void CapturedStep::record() {
  const auto changed = optimizer_.changed();
  std::vector<Tensor> before;
  before.reserve(changed.size());
  for (const auto& tensor : changed) before.push_back(tensor.clone());
  const auto put_back = [&] {
    for (std::size_t i = 0; i < changed.size(); ++i) changed[i].copy_(before[i]);
  };
  optimizer_.set_learning_rate(0);
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
  for (const auto& each : parameters_) torch::autograd::impl::set_grad_accumulator(each.tensor, {});
  run();
}

void CapturedStep::run() {
  std::vector<Tensor> parameters, gradients;
  for (const auto& each : parameters_) parameters.push_back(each.tensor);
  Tensor losses;
  {
    const torch::AutoGradMode with_autograd(true);
    const auto value = objective_.evaluate(*model_);
    losses = value.table();
    gradients = torch::autograd::grad({value.total.sum()}, parameters, {}, /*retain_graph=*/std::nullopt,
                                      /*create_graph=*/false, /*allow_unused=*/true);
  }
  const torch::NoGradGuard no_grad;
  optimizer_.update(gradients);
  Tensor sum = at::zeros({1}, losses.options());
  for (const auto& each : parameters) sum = sum + each.detach().sum().to(torch::kFloat64);
  const auto report = at::cat({losses.flatten(), sum});
  if (report_.defined()) report_.copy_(report);
  else report_ = report.clone();
}

NamedTensors CapturedStep::state() const { return optimizer_.state(); }

void CapturedStep::load_state(const NamedTensors& state) { optimizer_.load_state(state); }

}  // namespace mpol
