#include <mpol_cpp/train/steps/engines/fused_engine.h>

#include <algorithm>
#include <utility>

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/recorded_work.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/ops/lbfgs/gpu_lbfgs.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pipeline.h>
#include <mpol_cpp/train/steps/engines/fused_objective.h>
#include <mpol_cpp/train/optimizers/moment_optimizer.h>
#include <mpol_cpp/train/steps/recording/recorded_places.h>

namespace mpol::detail {
namespace {

constexpr std::int64_t steps_per_graph = 8;
constexpr std::int64_t small_npix = 32;
constexpr std::int64_t evaluations_between_looks = 4;  // whether a step of L-BFGS has ended

/// The same terms, each with the largest of its weights for all problems: what is 0 in all of them is left out.
std::vector<Term> with_largest_weights(const std::vector<Term>& terms) {
  std::vector<Term> largest;
  largest.reserve(terms.size());
  for (const auto& term : terms)
    largest.push_back(term.with_weights({*std::max_element(term.weights().begin(), term.weights().end())}));
  return largest;
}

ops::FusedGpuSettings gpu_settings(const ImageModel& model, const Objective& objective, const TrainOptions& options) {
  const auto base = model.base();
  ops::FusedGpuSettings settings{fused_settings(model, objective)};
  for (const auto& term : objective.terms()) settings.columns.push_back(term.kind());
  settings.update = fused_update(options.optimizer());
  settings.momentum = options.momentum();
  settings.beta1 = options.betas().first;
  settings.beta2 = options.betas().second;
  if (options.stops_each()) settings.stop_relative = options.stop_relative(), settings.stop_window = options.stop_window();
  settings.dtype = base.scalar_type();
  settings.device = base.device();
  return settings;
}

/// Largest difference relative to the largest value of the reference; NaN where either is not a number.
double gradient_error(const Tensor& value, const Tensor& reference) {
  const double scale = reference.abs().max().item<double>();
  return (value - reference).abs().max().item<double>() / (scale > 0 ? scale : 1.0);
}

/// Largest difference relative to the loss itself, of any term; NaN where either is not a number.
double loss_error(const Tensor& value, const Tensor& reference) {
  constexpr double smallest = 1e-300;  // of a term that is not there
  return ((value - reference).abs() / reference.abs().clamp_min(smallest)).max().item<double>();
}

/// The base pixels, the pipeline over them and its recordings.
class GpuEngine : public FusedEngine {
 public:
  GpuEngine(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
      : model_(std::move(model)),
        objective_(objective),
        kind_(options.optimizer()),
        place_(base().data_ptr()),
        dtype_(base().scalar_type()),
        pipeline_(make_pipeline(options)) {
    if (kind_ == OptimizerKind::lbfgs) {
      ops::GpuLbfgsSettings settings;
      settings.elements = base().numel(), settings.dtype = dtype_, settings.device = base().device();
      lbfgs_ = std::make_unique<ops::GpuLbfgs>(settings);
      gradient_ = at::empty_like(base().detach());
    }
    places_.add("likelihood.", objective_.likelihood().as_module());
    const auto problems = pipeline_->learning_rates().numel();
    check_rate_factors(options, problems);
    if (!options.rate_factors().empty()) {
      rate_factors_ = at::tensor(options.rate_factors(), torch::kFloat64).to(base().device());
    }
    stops_each_ = options.stops_each();
  }

  /// Recordings know where the base pixels and the likelihood's data lie.
  void check_places() const override {
    if (base().data_ptr() != place_ || base().scalar_type() != dtype_) {
      throw ValueError("the model was moved, cast or given other base pixels after its step was made: make a new one");
    }
    places_.check();
  }

  /// Eight steps are replayed by one launch where so many are left: the launch of a graph is much of what a step on a small image
  /// costs.
  std::vector<StepReport> update(double learning_rate, std::int64_t count) override {
    std::vector<StepReport> reports;
    reports.reserve(static_cast<std::size_t>(count));
    while (count > 0) {
      const auto steps = count >= steps_per_graph ? steps_per_graph : 1;
      run(learning_rate, steps);
      for (std::int64_t i = 0; i < steps; ++i) reports.push_back(report());
      count -= steps;
    }
    return reports;
  }

  StepReport search(double learning_rate) override {
    record();
    lbfgs_->begin(learning_rate);
    StepReport report;
    report.losses = evaluate_several(ops::GpuLbfgs::usual_evaluations);
    while (!lbfgs_->at_rest()) evaluate_several(evaluations_between_looks);
    return report;
  }

  void set_stopped(const std::vector<bool>& stopped) override {
    auto flags = at::empty({static_cast<std::int64_t>(stopped.size())}, torch::kUInt8);
    std::copy(stopped.begin(), stopped.end(), flags.mutable_data_ptr<std::uint8_t>());
    pipeline_->stopped().copy_(flags);
  }
  bool stops_by_itself() const override { return stops_each_; }
  void set_totals(const Tensor& totals) override { pipeline_->set_recent_totals(totals); }

  void record() override {
    if (one_step_) return;
    one_step_ = lbfgs_ ? record_evaluation() : record(1);
  }

  /// Where the whole problem does not fit into memory beside autograd's graph, a small one of the same terms is compared.
  std::string disagreement() override {
    const auto device = base().device();
    try {
      return disagreement_with_autograd();
    } catch (const c10::OutOfMemoryError&) {
      log_info(
          fmt::format("{} has no memory to compare the fused kernels with autograd on all of this image: they are compared "
                      "on one of {} x {} pixels",
                      device.str(), small_npix, small_npix));
    }
    if (!device.is_cpu()) at::accelerator::emptyCache();
    return small_disagreement();
  }

  std::int64_t launches() const override { return one_step_ ? one_step_->launches() : 0; }

  std::vector<Moments> moments() const override {
    return {{{base_cube_name, base()}, like_base(pipeline_->first()), like_base(pipeline_->second())}};
  }
  std::int64_t steps() const override { return steps_; }
  void set_steps(std::int64_t steps) override {
    steps_ = steps;
    pipeline_->set_steps(steps);
  }
  ops::LbfgsMemory lbfgs_memory() override { return lbfgs_->memory(); }
  void restore(const ops::LbfgsMemory& memory) override { lbfgs_->restore(memory); }

 private:
  struct Evaluated {
    Tensor losses, gradient;
  };

  Tensor base() const { return model_->base(); }
  /// A moment of the pipeline in the shape of the base pixels.
  Tensor like_base(const Tensor& moment) const { return moment.defined() ? moment.view(base().sizes()) : moment; }

  std::unique_ptr<ops::FusedGpuPipeline> make_pipeline(const TrainOptions& options) const {
    std::vector<ops::ProblemCells> cells;
    for (const auto& own : cells_of(objective_.likelihood()))
      cells.push_back({own.cells, own.data.to(c10::toComplexType(dtype_)), own.weights.to(dtype_)});
    if (!cells.empty()) return std::make_unique<ops::FusedGpuPipeline>(gpu_settings(*model_, objective_, options), cells);
    return std::make_unique<ops::FusedGpuPipeline>(
        gpu_settings(*model_, objective_, options),
        [held = objective_.shared_likelihood()](const Tensor& images, Tensor& gradient) {
          return held->value_and_gradient(images, gradient, Accumulate::overwrite);
        });
  }

  void run(double learning_rate, std::int64_t steps) {
    auto& work = steps == 1 ? one_step_ : several_steps_;
    if (!work) work = record(steps);
    set_learning_rate(learning_rate);
    pipeline_->make_room(steps);
    work->replay();
    steps_ += steps;
  }

  void set_learning_rate(double learning_rate) {
    if (!rate_factors_.defined()) return pipeline_->set_learning_rate(learning_rate);
    if (learning_rate == learning_rate_) return;
    learning_rate_ = learning_rate;
    pipeline_->learning_rates().copy_(rate_factors_).mul_(learning_rate);
  }

  std::unique_ptr<RecordedWork> record(std::int64_t steps) {
    auto gradient = at::empty_like(base());
    evaluate(gradient);  // loads kernels and plans, which a recording could not
    const auto work = [this, steps, pixels = base().detach()] { pipeline_->enqueue(pixels, steps); };
    return std::make_unique<RecordedWork>(base().device(), work, /*warm_ups=*/0);
  }

  StepReport report() {
    const auto losses = pipeline_->next_losses();
    return {losses.losses, losses.parameters.size(0) == 1 ? losses.parameters.select(0, 0) : losses.parameters.sum()};
  }

  ops::FusedGpuPipeline::Losses evaluate(const Tensor& gradient) {
    pipeline_->make_room(1);
    pipeline_->enqueue_gradient(base().detach(), gradient);
    return pipeline_->next_losses();
  }

  std::unique_ptr<RecordedWork> record_evaluation() {
    const auto work = [this, pixels = base().detach()] {
      lbfgs_->enqueue(pixels, gradient_, pipeline_->totals(), [&] { pipeline_->enqueue_gradient(pixels, gradient_); });
    };
    pipeline_->make_room(1);
    work();  // at rest, where it changes nothing; it loads kernels and plans, which a recording could not
    pipeline_->next_losses();
    return std::make_unique<RecordedWork>(base().device(), work, /*warm_ups=*/0);
  }

  /// @return the losses of the first
  Tensor evaluate_several(std::int64_t count) {
    pipeline_->make_room(count);
    Tensor first;
    for (std::int64_t i = 0; i < count; ++i) {
      one_step_->replay();
      const auto losses = pipeline_->next_losses().losses;
      if (i == 0) first = losses;
    }
    return first;
  }

  std::string disagreement_with_autograd() {
    const auto kept = base().detach().clone();
    const auto put_back = [&] {
      const torch::NoGradGuard no_grad;
      base().copy_(kept);
    };
    Evaluated expected;
    ops::FusedGpuPipeline::Losses losses;
    Tensor gradient;
    try {
      perturb();
      expected = objective_by_autograd();
      const torch::NoGradGuard no_grad;
      gradient = at::empty_like(expected.gradient);
      losses = evaluate(gradient);
    } catch (...) {
      put_back();
      throw;
    }
    put_back();
    const double in_losses = loss_error(losses.losses, expected.losses);
    const double in_gradient = gradient_error(gradient, expected.gradient);
    const bool single = base().scalar_type() == torch::kFloat32;
    const double bound_of_losses = single ? 1e-4 : 1e-9, bound_of_gradient = single ? 1e-3 : 1e-8;
    if (in_losses <= bound_of_losses && in_gradient <= bound_of_gradient) return {};
    return fmt::format(
        "on {} the fused kernels differ from autograd by {:.1e} in the losses (at most {:.0e} is expected) and by {:.1e} in the "
        "gradient (at most {:.0e})",
        base().device().str(), in_losses, bound_of_losses, in_gradient, bound_of_gradient);
  }

  /// The disagreement of a small problem: up to two channels with data in every third cell.
  std::string small_disagreement() const {
    const GridCoords coords(model_->coords().cell_size(), small_npix);
    const auto nchan = std::min<std::int64_t>(base().size(-3), 2);
    const auto cells = at::arange(0, nchan * small_npix * small_npix, 3);
    const auto number = (cells + 1).to(torch::kFloat64);
    GriddedLikelihood likelihood(GriddedDataset(coords, nchan, cells, at::complex((number * 0.61).sin(), (number * 0.41).sin()),
                                                (number * 0.75).sin().square() + 0.1));
    likelihood->to(base().device(), dtype_);
    GriddedNet model(
        GriddedNetOptions(coords).base_cube(at::zeros({nchan, small_npix, small_npix}, torch::kFloat64)).dtype(dtype_));
    model->to(base().device());
    GpuEngine twin(model.ptr(), Objective(likelihood.ptr(), with_largest_weights(objective_.terms())),
                   TrainOptions().optimizer(kind_));
    return twin.disagreement_with_autograd();
  }

  /// Away from the start of a fit, which is flat: an image turned or shifted would look the same.
  void perturb() {
    const torch::NoGradGuard no_grad;
    const auto index = at::arange(base().numel(), torch::TensorOptions(torch::kFloat64).device(base().device()));
    base().add_((index * 0.7548776662466927).sin().view_as(base()).to(base().scalar_type()));
  }

  Evaluated objective_by_autograd() {
    const torch::AutoGradMode with_autograd(true);
    const auto value = objective_.evaluate(*model_);
    return {value.table(), torch::autograd::grad({value.total.sum()}, {base()}).front()};
  }

  std::shared_ptr<ImageModel> model_;
  Objective objective_;
  OptimizerKind kind_;
  const void* place_;  // of the base pixels
  torch::Dtype dtype_;
  RecordedPlaces places_;
  std::unique_ptr<ops::FusedGpuPipeline> pipeline_;
  std::int64_t steps_ = 0;
  Tensor rate_factors_;  // (problems) float64 on the device; undefined where they are 1
  double learning_rate_ = 0;
  bool stops_each_ = false;
  std::unique_ptr<RecordedWork> one_step_, several_steps_;  // one evaluation of L-BFGS
  std::unique_ptr<ops::GpuLbfgs> lbfgs_;                    // null for the others, which the pipeline itself does
  Tensor gradient_;                                         // of L-BFGS
};

}  // namespace

std::unique_ptr<FusedEngine> make_gpu_engine(std::shared_ptr<ImageModel> model, const Objective& objective,
                                             const TrainOptions& options) {
  return std::make_unique<GpuEngine>(std::move(model), objective, options);
}

}  // namespace mpol::detail
