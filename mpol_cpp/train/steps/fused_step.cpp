#include <mpol_cpp/train/steps/fused_step.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/train/optimizers/lbfgs_memory.h>
#include <mpol_cpp/train/steps/engines/fused_objective.h>

namespace mpol {
namespace {

/// @throws ValueError where there is an obstacle
std::shared_ptr<ImageModel> allowed(std::shared_ptr<ImageModel> model, const std::string& obstacle) {
  if (obstacle.empty()) return model;
  throw ValueError(fmt::format("the fused step does not apply: {}; use auto or eager", obstacle));
}

}  // namespace

std::string FusedStep::obstacle(ImageModel& model, const Objective& objective, const TrainOptions& options) {
  if (!options.is_plain_update()) return "the update is LibTorch's";
  if (detail::is_on_gpu(model)) return obstacle_on_gpu(model, objective);
  if (auto reason = detail::obstacle_to_fusing(model, objective); !reason.empty()) return reason;
  const auto device = model.base().device();
  return device.is_cpu() ? std::string()
                         : fmt::format("the model is on {}; the fused step is for the CPU and CUDA devices", device.str());
}

std::string FusedStep::obstacle_on_gpu(ImageModel& model, const Objective& objective) {
  if (auto reason = detail::obstacle_to_fusing(model, objective); !reason.empty()) return reason;
  if (objective.likelihood().can_be_recorded()) return {};
  return fmt::format(
      "on a GPU the fused step is for likelihoods that can be recorded, as the gridded, exact, loose and noise ones themselves; "
      "this {} one is another class",
      objective.likelihood().name());
}

FusedStep::FusedStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options,
                     std::string reason)
    : FusedStep(model, objective, options, std::move(reason),
                detail::is_on_gpu(*model) ? &detail::make_gpu_engine : &detail::make_cpu_engine) {}

FusedStep::FusedStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options,
                     std::string reason, EngineMaker make)
    : model_(allowed(
          model, make == &detail::make_gpu_engine ? obstacle_on_gpu(*model, objective) : obstacle(*model, objective, options))),
      optimizer_(options.optimizer()),
      dtype_(base().scalar_type()),
      problems_(static_cast<std::size_t>(base().numel() / (base().size(-3) * base().size(-2) * base().size(-1)))),
      stops_each_(options.stops_each()),
      reason_(std::move(reason)),
      engine_(make(model_, objective, options)) {}

void FusedStep::record() {
  const torch::NoGradGuard no_grad;
  engine_->record();
}

StepReport FusedStep::take(double learning_rate) { return take_several(learning_rate, 1).front(); }

std::vector<StepReport> FusedStep::take_several(double learning_rate, std::int64_t count) {
  const torch::NoGradGuard no_grad;
  engine_->check_places();
  std::vector<StepReport> reports;
  if (optimizer_ == OptimizerKind::lbfgs) {
    for (std::int64_t i = 0; i < count; ++i) {
      reports.push_back(engine_->search(learning_rate));
      reports.back().parameters_sum = base().sum(torch::kFloat64);
    }
  } else {
    reports = engine_->update(learning_rate, count);
  }
  base().unsafeGetTensorImpl()->bump_version();
  return reports;
}

void FusedStep::set_stopped(const std::vector<bool>& stopped) {
  if (!stops_each_ || stopped.size() != problems_) {
    throw ValueError(fmt::format("{} flags for {} problems of a step whose problems end {}", stopped.size(), problems_,
                                 stops_each_ ? "by themselves" : "together"));
  }
  engine_->set_stopped(stopped);
}

void FusedStep::set_totals(const Tensor& totals) {
  if (!engine_->stops_by_itself()) return Step::set_totals(totals);
  engine_->set_totals(totals);
}

NamedTensors FusedStep::state() const {
  if (optimizer_ == OptimizerKind::lbfgs) return detail::save_lbfgs(engine_->lbfgs_memory(), dtype_);
  return detail::save_moments(optimizer_, engine_->moments(), engine_->steps());
}

void FusedStep::load_state(const NamedTensors& state) {
  if (optimizer_ == OptimizerKind::lbfgs) return engine_->restore(detail::load_lbfgs(state, base().numel()));
  engine_->set_steps(detail::load_moments(optimizer_, engine_->moments(), state));
}

}  // namespace mpol
