// Problems of a batch with learning rates and ends of their own.
#include "catch.h"

#include <algorithm>
#include <limits>
#include <set>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/eager_step.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "problems.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const std::vector<double> factors = {1, 0.125, 2};

/// A batch of three problems that start apart.
struct Batch {
  SmallProblem problem;
  TrainOptions options;

  Batch(OptimizerKind optimizer, StepKind step, torch::Dtype dtype = torch::kFloat64) {
    problem.dtype = dtype;
    options.optimizer(optimizer).learning_rate(optimizer == OptimizerKind::adam ? 0.1 : 2.0).epochs(400).step(step);
    options.schedule(LearningRateSchedule::exponential(0.995)).stop_relative(3e-2).stop_window(5);
    if (optimizer == OptimizerKind::sgd) options.momentum(0.8).stop_relative(1e-2);
  }
  struct Outcome {
    TrainResult result;
    Tensor base;
  };
  Outcome run(const TrainOptions& with, const std::vector<Term>& more = {}) const {
    auto model = problem.model({3});
    auto result = Trainer(model, problem.objective(more), with).fit();
    return {std::move(result), model->base().detach().clone()};
  }
  TrainOptions own() const { return TrainOptions(options).rate_factors(factors).stop_scope(StopScope::each); }
  Outcome alone(std::size_t which) const {
    auto model = problem.model_of(problem.model({3})->base().detach()[static_cast<std::int64_t>(which)].clone());
    auto result =
        Trainer(model, problem.objective(), TrainOptions(options).learning_rate(options.learning_rate() * factors[which])).fit();
    return {std::move(result), model->base().detach().clone()};
  }
};

/// The total of one problem at an epoch: where it ended for all later ones.
double total_at(const TrainResult& result, std::size_t epoch) {
  return epoch < result.history.size() ? result.history[epoch].total() : result.loss.total();
}

}  // namespace

TEST_CASE("problems with learning rates and ends of their own go where each goes alone", "[train][fused]") {
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd);
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  CAPTURE(to_string(optimizer), to_string(step));
  const Batch batch(optimizer, step);
  const auto together = batch.run(batch.own());
  REQUIRE(together.result.stop_reason == StopReason::converged);
  REQUIRE(together.result.problem_epochs.size() == 3);
  CAPTURE(together.result.problem_epochs);
  CHECK(together.result.history.front().learning_rate == batch.options.learning_rate());
  std::vector<Batch::Outcome> each;
  for (std::size_t i = 0; i < 3; ++i) {
    each.push_back(batch.alone(i));
    const auto& one = each.back();
    CHECK(one.result.stop_reason == StopReason::converged);
    CHECK(together.result.problem_epochs[i] == one.result.epochs);
    const auto own = together.base[static_cast<std::int64_t>(i)];
    if (step == StepKind::fused) CHECK(torch::equal(own, one.base));
    CHECK(relative_error(own, one.base) < 1e-7);
  }
  CHECK(std::set<std::int64_t>(together.result.problem_epochs.begin(), together.result.problem_epochs.end()).size() > 1);
  CHECK(together.result.epochs ==
        *std::max_element(together.result.problem_epochs.begin(), together.result.problem_epochs.end()));
  for (std::size_t epoch = 0; epoch < together.result.history.size(); ++epoch) {
    double sum = 0;
    for (const auto& one : each) sum += total_at(one.result, epoch);
    CAPTURE(epoch);
    CHECK(together.result.history[epoch].total() == Approx(sum).epsilon(1e-10));
  }
}

TEST_CASE("problems that end by themselves do so at the same epoch with fused and eager steps", "[train][fused]") {
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  const std::string likelihood = GENERATE("gridded", "exact");
  Batch batch(OptimizerKind::adam, StepKind::fused, dtype);
  batch.problem.likelihood = likelihood;
  const auto fused = batch.run(batch.own()), eager = batch.run(batch.own().step(StepKind::eager));
  CHECK(relative_error(fused.base, eager.base) < (dtype == torch::kFloat64 ? 1e-7 : 1e-2));
  if (dtype == torch::kFloat64) CHECK(fused.result.problem_epochs == eager.result.problem_epochs);
}

TEST_CASE("a resumed fit knows which problems have ended, bit for bit", "[train][fused]") {
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  const Batch batch(OptimizerKind::adam, step, dtype);
  const auto whole = batch.run(batch.own());
  REQUIRE(whole.result.stop_reason == StopReason::converged);
  auto ends = whole.result.problem_epochs;
  std::sort(ends.begin(), ends.end());
  for (const std::int64_t epochs : {std::int64_t{3}, ends[0] - 1, ends[0], ends[0] + 1, ends[1] + 2, ends[2] - 1}) {
    CAPTURE(epochs, ends);
    const TemporaryFolder folder;
    const auto path = folder / "checkpoint.safetensors";
    const auto stopped =
        batch.run(batch.own().checkpoint(path).interrupted([=, done = std::int64_t{0}]() mutable { return ++done == epochs; }));
    CHECK(stopped.result.stop_reason == StopReason::interrupted);
    const auto resumed = batch.run(batch.own().checkpoint(path).resume(true));
    CHECK(resumed.result.resumed_from == epochs);
    CHECK(resumed.result.problem_epochs == whole.result.problem_epochs);
    CHECK(same_history(resumed.result.history, whole.result.history));
    CHECK(torch::equal(resumed.base, whole.base));
    const auto resume = batch.own().checkpoint(path).resume(true);
    CHECK_THROWS_WITH(batch.run(TrainOptions(resume).rate_factors({1, 1, 2})), ContainsSubstring("rate_factors"));
    CHECK_THROWS_WITH(batch.run(TrainOptions(resume).stop_scope(StopScope::sum)), ContainsSubstring("stop_scope"));
  }
}

TEST_CASE("a fit that diverges after problems have ended goes back to where they had", "[train]") {
  const Batch batch(OptimizerKind::adam, StepKind::eager);
  std::vector<Tensor> bases;
  const auto keep = [&](const Progress& progress) {
    bases.push_back(progress.model.base().detach().clone());
    return CallbackAction::proceed;
  };
  const auto breaks_at = [](const Tensor& base) {
    return Term("mine", 1.0, [base](const ModelOutput& out) {
      const auto sum = out.sky.sum({-3, -2, -1});
      return base.defined() && at::equal(out.base, base) ? sum * std::numeric_limits<double>::quiet_NaN() : sum * 0.0;
    });
  };
  const auto whole = batch.run(batch.own().callbacks({keep}), {breaks_at({})});
  auto ends = whole.result.problem_epochs;
  std::sort(ends.begin(), ends.end());
  for (const auto broken : {ends[0] + 1, ends[1] + 2}) {
    const auto at = static_cast<std::size_t>(broken);
    const auto run = batch.run(batch.own(), {breaks_at(bases[at - 1])});
    REQUIRE(run.result.stop_reason == StopReason::diverged);
    CHECK(run.result.epochs == broken - 1);
    CHECK(torch::equal(run.base, bases[at - 2]));
    CHECK(run.result.problem_epochs[static_cast<std::size_t>(
              std::find(whole.result.problem_epochs.begin(), whole.result.problem_epochs.end(), ends[0]) -
              whole.result.problem_epochs.begin())] == ends[0]);
  }
}

TEST_CASE("fused and eager steps of problems with updates of their own take up each other's state", "[train][fused][quick]") {
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd);
  const Batch batch(optimizer, StepKind::automatic);
  const auto options = batch.own();
  auto mixed = batch.problem.model({3}), whole = batch.problem.model({3});
  const auto objective = batch.problem.objective();
  EagerStep eager(mixed.ptr(), objective, options, "tested"), expected(whole.ptr(), objective, options, "tested");
  FusedStep fused(mixed.ptr(), objective, options, "tested");
  for (int i = 0; i < 4; ++i) {
    if (i == 2)
      fused.load_state(eager.state()), fused.set_stopped({true, false, false}), expected.set_stopped({true, false, false});
    if (i < 2) eager.take(0.1);
    else fused.take(0.1);
    expected.take(0.1);
  }
  CHECK(relative_error(mixed->base(), whole->base()) < 1e-10);
  fused.set_stopped({false, false, false}), expected.set_stopped({false, false, false});
  const auto own = fused.take(0.1), other = expected.take(0.1);
  CHECK(relative_error(own.losses, other.losses) < 1e-10);
  CHECK(relative_error(mixed->base(), whole->base()) < 1e-10);
}

TEST_CASE("updates of their own are refused where problems cannot have them", "[train][quick]") {
  const Batch batch(OptimizerKind::adam, StepKind::automatic);
  auto model = batch.problem.model({3});
  const auto objective = batch.problem.objective();
  const auto fit = [&](const TrainOptions& options) { Trainer(model, objective, options).fit(); };
  const auto lbfgs = TrainOptions().optimizer(OptimizerKind::lbfgs).learning_rate(1);
  CHECK_THROWS_WITH(fit(TrainOptions(lbfgs).rate_factors({1, 2, 3})), ContainsSubstring("lbfgs"));
  CHECK_THROWS_WITH(fit(TrainOptions(lbfgs).stop_scope(StopScope::each)), ContainsSubstring("stop_scope"));
  CHECK_THROWS_WITH(fit(TrainOptions().rate_factors({1, 2})), ContainsSubstring("2 rate_factors, but 3 problems"));
  CHECK_THROWS_WITH(fit(TrainOptions().step(StepKind::eager).rate_factors({1, 2})), ContainsSubstring("2 rate_factors"));
  CHECK_THROWS_WITH(fit(TrainOptions().rate_factors({1, 2, -1})), ContainsSubstring("rate_factors is -1"));
  CHECK_THAT(CapturedStep::obstacle(*model, objective, batch.own()), ContainsSubstring("of their own"));
  CHECK_THROWS_AS(CapturedStep(model.ptr(), objective, batch.own(), "tested"), ValueError);
  EagerStep together(model.ptr(), objective, TrainOptions(), "tested");
  CHECK_THROWS_AS(together.set_stopped({true, true, true}), ValueError);
  FusedStep fused(model.ptr(), objective, TrainOptions(), "tested");
  CHECK_THROWS_AS(fused.set_stopped({true, true, true}), ValueError);
  // A parameter that all problems share has no rate of its own.
  model->register_parameter("shared", torch::ones({2}));
  CHECK_THROWS_WITH(EagerStep(model.ptr(), objective, batch.own(), "tested"), ContainsSubstring("model.shared"));
}
