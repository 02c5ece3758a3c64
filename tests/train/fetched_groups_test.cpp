// Fits whose losses are looked at in groups of epochs, as on a GPU, against those that look at each epoch.
#include "catch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/fit.h>
#include <mpol_cpp/train/steps/fused_step.h>

#include "compare.h"
#include "problems.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using GroupLimits = mpol::detail::Fit::FetchLimits;
constexpr double endless = std::numeric_limits<double>::infinity();

std::unique_ptr<Step> emulated_step(const std::shared_ptr<ImageModel>& model, const Objective& objective,
                                    const TrainOptions& options) {
  return std::make_unique<FusedStep>(model, objective, options, "emulated", &mpol::detail::make_gpu_engine);
}

struct EndedFit {
  TrainResult result;
  Tensor base;
};

/// With the emulated step of a GPU, looked at after `epochs` at most.
EndedFit fit_in_groups(const SmallProblem& problem, const TrainOptions& options, std::int64_t epochs,
                       const std::vector<std::int64_t>& problems = {}) {
  auto model = problem.model(problems);
  const auto objective = problem.objective();
  const GroupLimits limits{.epochs = epochs, .seconds = endless};
  auto result = mpol::detail::Fit(model.ptr(), objective, options, emulated_step, limits).run();
  return {std::move(result), model->base().detach().clone()};
}

void check_same_end(const EndedFit& own, const EndedFit& expected) {
  CHECK(own.result.stop_reason == expected.result.stop_reason);
  CHECK(own.result.epochs == expected.result.epochs);
  CHECK(own.result.problem_epochs == expected.result.problem_epochs);
  CHECK(own.result.loss.values == expected.result.loss.values);
  CHECK(own.result.diagnosis == expected.result.diagnosis);
  CHECK(own.result.warnings == expected.result.warnings);
  CHECK(same_history(own.result.history, expected.result.history));
  CHECK(torch::equal(own.base, expected.base));
}

TrainOptions grouped_options(std::int64_t epochs) {
  return TrainOptions().learning_rate(0.1).epochs(epochs).on_divergence(OnDivergence::off);
}

}  // namespace

TEMPLATE_TEST_CASE("fits are the same however many epochs are looked at at once", "[train][fused][cuda][quick]", float, double) {
  const SmallProblem problem{.dtype = dtype_of<TestType>(), .likelihood = GENERATE("gridded", "exact")};
  auto options = grouped_options(131);
  options.optimizer(GENERATE(OptimizerKind::adam, OptimizerKind::sgd));
  if (GENERATE(false, true)) options.schedule(LearningRateSchedule::cosine(131, 0.01));
  const auto expected = fit_in_groups(problem, options, 1);
  CHECK(expected.result.history.size() == 131);
  for (const std::int64_t epochs : {3, 8, 48}) check_same_end(fit_in_groups(problem, options, epochs), expected);
}

TEST_CASE("a callback sees each epoch of a group and ends the fit in any of them", "[train][fused][cuda][quick]") {
  const SmallProblem problem{.dtype = torch::kFloat32};
  const std::int64_t last = GENERATE(0, 1, 4, 5, 20, 21, 46, 68, 69, 80);
  CAPTURE(last);
  std::vector<std::int64_t> seen;
  std::vector<double> seconds;
  const auto options = grouped_options(90).callbacks({[&](const Progress& progress) {
    seen.push_back(progress.loss.epoch), seconds.push_back(progress.seconds);
    return progress.loss.epoch == last ? CallbackAction::stop : CallbackAction::proceed;
  }});
  const auto expected = fit_in_groups(problem, options, 1);
  CHECK(expected.result.stop_reason == StopReason::callback);
  CHECK(expected.result.epochs == last + 1);
  const auto seen_before = std::exchange(seen, {});
  for (const std::int64_t epochs : {5, 48}) {
    seen.clear(), seconds.clear();
    check_same_end(fit_in_groups(problem, options, epochs), expected);
    CHECK(seen == seen_before);
    CHECK(std::is_sorted(seconds.begin(), seconds.end()));
  }
}

TEST_CASE("callbacks see the model of every epoch that is asked for", "[train][fused][cuda][quick]") {
  const SmallProblem problem;
  std::vector<Tensor> seen;
  const auto options = grouped_options(60).model_interval(7).callbacks({[&](const Progress& progress) {
    if ((progress.loss.epoch + 1) % 7 == 0) seen.push_back(progress.model.base().detach().clone());
    return CallbackAction::proceed;
  }});
  const auto expected = fit_in_groups(problem, options, 1);
  const auto models = std::exchange(seen, {});
  REQUIRE(models.size() == 8);
  check_same_end(fit_in_groups(problem, options, 48), expected);
  REQUIRE(seen.size() == models.size());
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(torch::equal(seen[i], models[i]));
}

TEST_CASE("a fit converges in the same epoch in groups", "[train][fused][cuda][quick]") {
  const SmallProblem problem;
  const auto options = grouped_options(2000).stop_relative(1e-3).stop_window(GENERATE(3, 10));
  const auto expected = fit_in_groups(problem, options, 1);
  CHECK(expected.result.stop_reason == StopReason::converged);
  for (const std::int64_t epochs : {6, 48}) check_same_end(fit_in_groups(problem, options, epochs), expected);
}

TEMPLATE_TEST_CASE("problems of a batch stand still after the same epochs in groups", "[train][fused][cuda][quick]", float,
                   double) {
  struct LedByHost : FusedStep {
    using FusedStep::FusedStep;
    bool stops_by_itself() const override { return false; }
  };
  const SmallProblem problem{.dtype = dtype_of<TestType>()};
  const std::int64_t most = GENERATE(60, 2000);
  const auto options =
      grouped_options(most).stop_relative(2e-3).stop_window(4).stop_scope(StopScope::each).rate_factors({1, 0.3, 0.6});
  const auto expected = fit_in_groups(problem, options, 1, {3});
  if (most == 2000) CHECK(expected.result.problem_epochs[0] != expected.result.problem_epochs[1]);
  for (const std::int64_t epochs : {6, 48}) check_same_end(fit_in_groups(problem, options, epochs, {3}), expected);

  const auto led_by_host = [](const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& own) {
    const auto hardly_ever = TrainOptions(own).stop_relative(1e-300);  // the device itself stops no problem
    return std::unique_ptr<Step>(
        std::make_unique<LedByHost>(model, objective, hardly_ever, "emulated", &mpol::detail::make_gpu_engine));
  };
  auto model = problem.model({3});
  const auto objective = problem.objective();
  EndedFit by_host{mpol::detail::Fit(model.ptr(), objective, options, led_by_host, GroupLimits{.epochs = 48}).run(), {}};
  by_host.base = model->base().detach();
  check_same_end(by_host, expected);
}

TEST_CASE("a fit that diverges within a group ends as one that is looked at each epoch", "[train][fused][cuda][quick]") {
  const SmallProblem problem{.dtype = torch::kFloat32};
  const std::int64_t broken = GENERATE(0, 1, 7, 30, 70);
  const LearningRateSchedule breaks{"breaks", [broken](std::int64_t epoch) { return epoch < broken ? 1.0 : 1e38; }};
  std::vector<std::int64_t> seen;
  const auto options =
      grouped_options(100).optimizer(OptimizerKind::sgd).schedule(breaks).callbacks({[&](const Progress& progress) {
        seen.push_back(progress.loss.epoch);
        return CallbackAction::proceed;
      }});
  const auto expected = fit_in_groups(problem, options, 1);
  CHECK(expected.result.stop_reason == StopReason::diverged);
  const auto seen_before = std::exchange(seen, {});
  check_same_end(fit_in_groups(problem, options, 48), expected);
  CHECK(seen == seen_before);
}

TEST_CASE("checkpoints fall between groups, and a fit resumes from them bit for bit", "[train][fused][cuda][quick]") {
  const TemporaryFolder folder;
  const SmallProblem problem;
  const bool each = GENERATE(false, true);
  auto options = grouped_options(90).checkpoint_interval(10);
  if (each) options.stop_relative(3e-3).stop_window(4).stop_scope(StopScope::each).rate_factors({1, 0.3, 0.6});
  const std::vector<std::int64_t> problems = each ? std::vector<std::int64_t>{3} : std::vector<std::int64_t>{};
  const auto expected = fit_in_groups(problem, options, 1, problems);
  for (const std::int64_t last : {13, 33}) {
    CAPTURE(each, last);
    auto own = TrainOptions(options).checkpoint(folder / fmt::format("{}.safetensors", last));
    std::int64_t written = 0;
    const auto stop = [&](const Progress& progress) {
      if (progress.loss.epoch == last) written = read_checkpoint(own.checkpoint())->epochs;
      return progress.loss.epoch == last ? CallbackAction::stop : CallbackAction::proceed;
    };
    const auto stopped = fit_in_groups(problem, TrainOptions(own).callbacks({stop}), 48, problems);
    CHECK(stopped.result.epochs == last + 1);
    CHECK(written == last / 10 * 10);
    CHECK(read_checkpoint(own.checkpoint())->epochs == last + 1);
    const auto resumed = fit_in_groups(problem, own.resume(true), 48, problems);
    CHECK(resumed.result.resumed_from == last + 1);
    check_same_end(resumed, expected);
  }
}

TEST_CASE("groups are as short as the time between two looks wants them", "[train][fused][cuda][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective();
  std::vector<Tensor> seen;
  const auto options = grouped_options(12).callbacks({[&](const Progress& progress) {
    seen.push_back(progress.model.base().detach().clone());
    return CallbackAction::proceed;
  }});
  mpol::detail::Fit(model.ptr(), objective, options, emulated_step, GroupLimits{.epochs = 48, .seconds = 0}).run();
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK_FALSE(torch::equal(seen[i], seen[i - 1]));
}
