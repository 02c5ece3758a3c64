#include <mpol_cpp/train/steps/fused_step.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused/cpu/fused_pipeline.h>
#include <mpol_cpp/ops/lbfgs/cpu_lbfgs.h>
#include <mpol_cpp/train/steps/cpu_pipeline.h>
#include <mpol_cpp/train/steps/fused_objective.h>
#include <mpol_cpp/train/optimizers/lbfgs_memory.h>
#include <mpol_cpp/train/optimizers/moments.h>
#include <mpol_cpp/train/optimizers/problem_optimizer.h>

namespace mpol {

/// The base pixels, the optimiser's moments and the passes over them.
class FusedStep::Optimizer {
 public:
  Optimizer(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
      : model_(std::move(model)),
        terms_(objective.terms()),
        likelihood_scale_(1.0 / (2.0 * objective.normaliser())),
        kind_(options.optimizer()),
        momentum_(options.momentum()),
        betas_(options.betas()),
        dtype_(base().scalar_type()),
        rate_factors_(options.rate_factors()),
        stops_each_(options.stops_each()) {
    if (dtype_ == torch::kFloat32) single_ = detail::make_cpu_pipeline<float>(*model_, objective);
    else double_ = detail::make_cpu_pipeline<double>(*model_, objective);
    const auto problems = base().numel() / (base().size(-3) * base().size(-2) * base().size(-1));
    detail::check_rate_factors(options, problems);
    stopped_.resize(static_cast<std::size_t>(problems));
    if (kind_ == OptimizerKind::lbfgs) {
      if (dtype_ == torch::kFloat32) single_lbfgs_ = std::make_unique<ops::CpuLbfgs<float>>(base().numel());
      else double_lbfgs_ = std::make_unique<ops::CpuLbfgs<double>>(base().numel());
      gradient_ = at::empty_like(base().detach());
    }
    reset();
  }

  StepReport take(double learning_rate) {
    const torch::NoGradGuard no_grad;
    if (single_lbfgs_) return search(*single_lbfgs_, *single_, learning_rate);
    if (double_lbfgs_) return search(*double_lbfgs_, *double_, learning_rate);
    check_base();
    ++steps_;
    const auto& values = single_ ? run(*single_, learning_rate) : run(*double_, learning_rate);
    base().unsafeGetTensorImpl()->bump_version();
    return report(values);
  }

  void set_stopped(const std::vector<bool>& stopped) {
    if (!stops_each_ || stopped.size() != stopped_.size()) {
      throw ValueError(fmt::format("{} flags for {} problems of a step whose problems end {}", stopped.size(), stopped_.size(),
                                   stops_each_ ? "by themselves" : "together"));
    }
    for (std::size_t problem = 0; problem < stopped.size(); ++problem) {
      if (stopped[problem] == stopped_[problem]) continue;
      if (single_) stop_or_go_on(*single_, static_cast<std::int64_t>(problem), stopped[problem]);
      else stop_or_go_on(*double_, static_cast<std::int64_t>(problem), stopped[problem]);
    }
    stopped_ = stopped;
  }

  NamedTensors state() const {
    if (single_lbfgs_) return detail::save_lbfgs(single_lbfgs_->memory(), dtype_);
    if (double_lbfgs_) return detail::save_lbfgs(double_lbfgs_->memory(), dtype_);
    return detail::save_moments(kind_, moments(), steps_);
  }

  void load_state(NamedTensors saved) {
    if (single_lbfgs_) return single_lbfgs_->restore(detail::load_lbfgs(std::move(saved), base().numel()));
    if (double_lbfgs_) return double_lbfgs_->restore(detail::load_lbfgs(std::move(saved), base().numel()));
    steps_ = detail::load_moments(kind_, moments(), std::move(saved));
  }

 private:
  template <typename T>
  static void stop_or_go_on(ops::FusedPipeline<T>& pipeline, std::int64_t problem, bool stops) {
    if (stops) pipeline.stop(problem);
    else pipeline.go_on(problem);
  }

  Tensor base() const { return model_->base(); }
  std::vector<detail::Moments> moments() const { return {{{detail::base_cube_name, base()}, first_, second_}}; }

  void reset() {
    steps_ = 0;
    const auto zeros = [&] { return at::zeros_like(base().detach(), at::MemoryFormat::Contiguous); };
    if (kind_ == OptimizerKind::adam) second_ = zeros();
    if (kind_ == OptimizerKind::adam || momentum_ != 0) first_ = zeros();
  }

  /// One step of L-BFGS, which evaluates value and gradient several times along its direction.
  template <typename T>
  StepReport search(ops::CpuLbfgs<T>& lbfgs, ops::FusedPipeline<T>& pipeline, double learning_rate) {
    check_base();
    T *position = base().template mutable_data_ptr<T>(), *gradient = gradient_.template mutable_data_ptr<T>();
    StepReport first;
    lbfgs.step(position, gradient, learning_rate, [&] {
      const auto evaluated = report(pipeline.run(ops::FusedUpdate::none, {position, nullptr, nullptr, gradient}, {}));
      if (!first.losses.defined()) first = evaluated;
      const auto totals = evaluated.losses.select(0, 0);
      const auto* total = totals.template const_data_ptr<double>();
      return std::accumulate(total, total + totals.numel(), 0.0);
    });
    base().unsafeGetTensorImpl()->bump_version();
    first.parameters_sum = base().sum(torch::kFloat64);
    return first;
  }

  void check_base() const {
    if (base().scalar_type() != dtype_ || !base().device().is_cpu() || !base().is_contiguous()) {
      throw ValueError("the model was moved or cast after its step was made: make a new one");
    }
  }

  template <typename T>
  const std::vector<ops::FusedValues>& run(ops::FusedPipeline<T>& pipeline, double learning_rate) {
    const auto data = [](const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr; };
    const ops::UpdateRow<T> pixels{base().mutable_data_ptr<T>(), data(first_), data(second_), nullptr};
    ops::UpdateSettings update;
    update.rate = learning_rate;
    update.momentum = momentum_;
    if (kind_ == OptimizerKind::adam) {
      const auto steps = static_cast<double>(steps_);
      update.beta1 = betas_.first;
      update.beta2 = betas_.second;
      update.rate = learning_rate / (1.0 - std::pow(update.beta1, steps));
      update.second_scale = 1.0 / std::sqrt(1.0 - std::pow(update.beta2, steps));
    }
    const auto fused = kind_ == OptimizerKind::adam ? ops::FusedUpdate::adam : ops::FusedUpdate::sgd;
    if (rate_factors_.empty()) return pipeline.run(fused, pixels, update);
    std::vector<ops::UpdateSettings> updates;
    updates.reserve(rate_factors_.size());
    for (const double factor : rate_factors_) {
      updates.push_back(update);
      updates.back().rate *= factor;
    }
    return pipeline.run_each(fused, pixels, updates);
  }

  StepReport report(const std::vector<ops::FusedValues>& values) const {
    double parameters = 0;
    for (const auto& own : values) parameters += own.parameters;
    return {detail::loss_table(values, terms_, likelihood_scale_), at::scalar_tensor(parameters, torch::kFloat64)};
  }

  std::shared_ptr<ImageModel> model_;
  std::vector<Term> terms_;
  double likelihood_scale_;
  OptimizerKind kind_;
  double momentum_;
  Betas betas_;
  torch::Dtype dtype_;
  std::vector<double> rate_factors_;
  bool stops_each_;
  std::vector<bool> stopped_;
  std::unique_ptr<ops::FusedPipeline<float>> single_;  // one of the two
  std::unique_ptr<ops::FusedPipeline<double>> double_;
  std::int64_t steps_ = 0;
  Tensor first_, second_;
  std::unique_ptr<ops::CpuLbfgs<float>> single_lbfgs_;  // both are null for the others, which the pipeline itself does
  std::unique_ptr<ops::CpuLbfgs<double>> double_lbfgs_;
  Tensor gradient_;  // of L-BFGS
};

std::string FusedStep::obstacle(ImageModel& model, const Objective& objective, const TrainOptions& options) {
  if (!options.is_plain_update()) return "the update is LibTorch's";
  if (auto reason = detail::obstacle_to_fusing(model, objective); !reason.empty()) return reason;
  const auto device = model.base().device();
  return device.is_cpu() ? std::string() : fmt::format("the model is on {}; the fused step is for the CPU", device.str());
}

FusedStep::FusedStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options,
                     std::string reason)
    : reason_(std::move(reason)) {
  if (const auto why = obstacle(*model, objective, options); !why.empty()) {
    throw ValueError(fmt::format("the fused step does not apply: {}; use auto or eager", why));
  }
  optimizer_ = std::make_unique<Optimizer>(std::move(model), objective, options);
}

FusedStep::~FusedStep() = default;

StepReport FusedStep::take(double learning_rate) { return optimizer_->take(learning_rate); }

void FusedStep::set_stopped(const std::vector<bool>& stopped) { optimizer_->set_stopped(stopped); }

NamedTensors FusedStep::state() const { return optimizer_->state(); }

void FusedStep::load_state(const NamedTensors& state) { optimizer_->load_state(state); }

}  // namespace mpol
