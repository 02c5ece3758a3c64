#include <mpol_cpp/train/steps/engines/fused_engine.h>

#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused/cpu/fused_pipeline.h>
#include <mpol_cpp/ops/lbfgs/cpu_lbfgs.h>
#include <mpol_cpp/train/optimizers/moment_optimizer.h>
#include <mpol_cpp/train/steps/engines/cpu_pipeline.h>
#include <mpol_cpp/train/steps/engines/fused_objective.h>

namespace mpol::detail {
namespace {

/// The base pixels, their moments and the passes over them.
template <typename T>
class CpuEngine : public FusedEngine {
 public:
  CpuEngine(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
      : model_(std::move(model)),
        objective_(objective),
        kind_(options.optimizer()),
        momentum_(options.momentum()),
        betas_(options.betas()),
        rate_factors_(options.rate_factors()),
        pipeline_(make_cpu_pipeline<T>(*model_, objective)) {
    check_rate_factors(options, base().numel() / (base().size(-3) * base().size(-2) * base().size(-1)));
    if (kind_ == OptimizerKind::lbfgs) {
      lbfgs_ = std::make_unique<ops::CpuLbfgs<T>>(base().numel());
      gradient_ = at::empty_like(base().detach());
    }
    const auto zeros = [&] { return at::zeros_like(base().detach(), at::MemoryFormat::Contiguous); };
    if (kind_ == OptimizerKind::adam) second_ = zeros();
    if (kind_ == OptimizerKind::adam || momentum_ != 0) first_ = zeros();
  }

  void check_places() const override {
    if (base().scalar_type() != c10::CppTypeToScalarType<T>::value || !base().device().is_cpu() || !base().is_contiguous()) {
      throw ValueError("the model was moved or cast after its step was made: make a new one");
    }
  }

  std::vector<StepReport> update(double learning_rate, std::int64_t count) override {
    std::vector<StepReport> reports;
    reports.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      ++steps_;
      reports.push_back(report(run(learning_rate)));
    }
    return reports;
  }

  StepReport search(double learning_rate) override {
    T *position = base().template mutable_data_ptr<T>(), *gradient = gradient_.template mutable_data_ptr<T>();
    StepReport first;
    lbfgs_->step(position, gradient, learning_rate, [&] {
      const auto evaluated = report(pipeline_->run(ops::FusedUpdate::none, {position, nullptr, nullptr, gradient}, {}));
      if (!first.losses.defined()) first = evaluated;
      const auto totals = evaluated.losses.select(0, 0);
      const auto* total = totals.template const_data_ptr<double>();
      return std::accumulate(total, total + totals.numel(), 0.0);
    });
    return first;
  }

  void set_stopped(const std::vector<bool>& stopped) override {
    stopped_.resize(stopped.size());
    for (std::size_t problem = 0; problem < stopped.size(); ++problem) {
      if (stopped[problem] == stopped_[problem]) continue;
      if (stopped[problem]) pipeline_->stop(static_cast<std::int64_t>(problem));
      else pipeline_->resume(static_cast<std::int64_t>(problem));
    }
    stopped_ = stopped;
  }
  void set_totals(const Tensor&) override {}  // the caller stops problems

  std::vector<Moments> moments() const override { return {{{base_cube_name, base()}, first_, second_}}; }
  std::int64_t steps() const override { return steps_; }
  void set_steps(std::int64_t steps) override { steps_ = steps; }
  ops::LbfgsMemory lbfgs_memory() override { return lbfgs_->memory(); }
  void restore(const ops::LbfgsMemory& memory) override { lbfgs_->restore(memory); }

 private:
  Tensor base() const { return model_->base(); }

  const std::vector<ops::FusedValues>& run(double learning_rate) {
    const auto data = [](const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr; };
    const ops::UpdateRow<T> pixels{base().template mutable_data_ptr<T>(), data(first_), data(second_), nullptr};
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
    const auto fused = fused_update(kind_);
    if (rate_factors_.empty()) return pipeline_->run(fused, pixels, update);
    std::vector<ops::UpdateSettings> updates;
    updates.reserve(rate_factors_.size());
    for (const double factor : rate_factors_) {
      updates.push_back(update);
      updates.back().rate *= factor;
    }
    return pipeline_->run_each(fused, pixels, updates);
  }

  StepReport report(const std::vector<ops::FusedValues>& values) const {
    double parameters = 0;
    for (const auto& own : values) parameters += own.parameters;
    return {loss_table(values, objective_), at::scalar_tensor(parameters, torch::kFloat64)};
  }

  std::shared_ptr<ImageModel> model_;
  Objective objective_;
  OptimizerKind kind_;
  double momentum_;
  Betas betas_;
  std::vector<double> rate_factors_;
  std::vector<bool> stopped_;
  std::unique_ptr<ops::FusedPipeline<T>> pipeline_;
  std::int64_t steps_ = 0;
  Tensor first_, second_;
  std::unique_ptr<ops::CpuLbfgs<T>> lbfgs_;  // null for the others, which the pipeline itself does
  Tensor gradient_;                          // of L-BFGS
};

}  // namespace

std::unique_ptr<FusedEngine> make_cpu_engine(std::shared_ptr<ImageModel> model, const Objective& objective,
                                             const TrainOptions& options) {
  if (model->base().scalar_type() == torch::kFloat32) {
    return std::make_unique<CpuEngine<float>>(std::move(model), objective, options);
  }
  return std::make_unique<CpuEngine<double>>(std::move(model), objective, options);
}

}  // namespace mpol::detail
