// The recorded step; on the CPU the same operations run without a recording.
#include "catch.h"

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/eager_step.h>

#include "compare.h"
#include "problems.h"
#include "rehearsed_recordings.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Recorded {
  Tensor losses, sums, base;
};

template <typename Kind>
Recorded steps_of(torch::Dtype dtype, const TrainOptions& options, double rate, const std::vector<std::int64_t>& problems = {}) {
  SmallProblem problem;
  problem.dtype = dtype;
  auto model = problem.model(problems);
  Kind step(model.ptr(), problem.objective(), options, "tested");
  std::vector<Tensor> losses, sums;
  for (int i = 0; i < 40; ++i) {
    const auto report = step.take(rate * (i < 20 ? 1 : 0.5));
    losses.push_back(report.losses);
    sums.push_back(report.parameters_sum);
  }
  return {at::stack(losses), at::stack(sums), model->base().detach().clone()};
}

}  // namespace

TEMPLATE_TEST_CASE("captured steps follow eager ones", "[train][captured][quick]", float, double) {
  const auto options =
      GENERATE(TrainOptions(), TrainOptions(TrainOptions().betas({0.85, 0.99})), TrainOptions().optimizer(OptimizerKind::sgd),
               TrainOptions().optimizer(OptimizerKind::sgd).momentum(0.8));
  const double rate = options.optimizer() == OptimizerKind::adam ? 0.1 : 1.0;
  CAPTURE(to_string(options.optimizer()), options.momentum());
  const auto dtype = dtype_of<TestType>();
  const auto own = steps_of<CapturedStep>(dtype, options, rate), expected = steps_of<EagerStep>(dtype, options, rate);
  CHECK(relative_error(own.losses, expected.losses) < tolerance<TestType>(1e-12, 1e-5));
  CHECK(relative_error(own.sums, expected.sums) < tolerance<TestType>(1e-12, 1e-4));
  CHECK(relative_error(own.base, expected.base) < tolerance<TestType>(1e-11, 1e-3));
}

TEST_CASE("captured steps of a batch report each problem", "[train][captured][quick]") {
  const auto own = steps_of<CapturedStep>(torch::kFloat64, TrainOptions(), 0.1, {3});
  const auto expected = steps_of<EagerStep>(torch::kFloat64, TrainOptions(), 0.1, {3});
  CHECK(relative_error(own.losses, expected.losses) < 1e-12);
}

TEST_CASE("the optimiser's state passes between captured and eager steps", "[train][captured][quick]") {
  const auto options = GENERATE(TrainOptions(), TrainOptions().optimizer(OptimizerKind::sgd).momentum(0.8));
  const SmallProblem problem;
  auto mixed = problem.model(), whole = problem.model();
  const auto objective = problem.objective();
  EagerStep expected(whole.ptr(), objective, options, "tested");
  for (int i = 0; i < 6; ++i) expected.take(0.1);

  EagerStep first(mixed.ptr(), objective, options, "tested"), last(mixed.ptr(), objective, options, "tested");
  CapturedStep captured(mixed.ptr(), objective, options, "tested");
  CHECK(captured.state().empty());
  first.take(0.1), first.take(0.1);
  captured.load_state(first.state());
  captured.take(0.1), captured.take(0.1);
  last.load_state(captured.state());
  last.take(0.1), last.take(0.1);
  CHECK(relative_error(mixed->base(), whole->base()) < 1e-12);
  CHECK_THROWS_AS(captured.load_state({{"something.else", torch::ones({1})}}), FileError);
}

TEST_CASE("a step that cannot be captured is refused with the reason", "[train][captured][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective();
  const auto lbfgs = TrainOptions().optimizer(OptimizerKind::lbfgs);
  CHECK_THAT(CapturedStep::obstacle(*model, objective, TrainOptions()), ContainsSubstring("on a GPU only"));
  CHECK_THAT(CapturedStep::obstacle(*model, objective, lbfgs), ContainsSubstring("L-BFGS"));
  CHECK_THAT(CapturedStep::obstacle(*model, problem.objective({terms::entropy(1e-3)}), TrainOptions()),
             ContainsSubstring("entropy"));
  CHECK_THAT(CapturedStep::obstacle(*model, problem.objective({terms::uv_sparsity(1e-3, 1e5)}), TrainOptions()),
             ContainsSubstring("uv_sparsity"));
  const GridCoords coords(0.1, 16);
  const Objective batches(MiniBatchLikelihood(coords, random_visibilities(coords, 1, 7), ChannelMap::cube(1),
                                              VisibilitySamplerOptions().batch_size(20)),
                          {});
  CHECK_THAT(CapturedStep::obstacle(*model, batches, TrainOptions()), ContainsSubstring("another batch"));
  CHECK_THROWS_WITH(CapturedStep(model.ptr(), batches, TrainOptions(), "tested"), ContainsSubstring("another batch"));
  CHECK_THROWS_AS(CapturedStep(model.ptr(), objective, lbfgs, "tested"), ValueError);
  CapturedStep step(model.ptr(), objective, TrainOptions(), "tested");
  step.take(0.1);
  const auto kept = model->base().detach();  // or the new pixels may lie where the old ones were
  model->to(torch::kFloat32);
  model->to(torch::kFloat64);
  CHECK_THROWS_AS(step.take(0.1), ValueError);
}

TEST_CASE("a recording that fails leaves no trace, and steps can be taken once it succeeds", "[train][captured][quick]") {
  const auto options = GENERATE(TrainOptions(), TrainOptions().optimizer(OptimizerKind::sgd).momentum(0.8));
  const SmallProblem problem;
  auto model = problem.model(), other = problem.model();
  const auto objective = problem.objective();
  CapturedStep step(model.ptr(), objective, options, "tested");
  EagerStep expected(other.ptr(), objective, options, "tested");
  model->make_sky();  // its graph knows the parameters' accumulators, and lives on
  const auto before = model->base().detach().clone();
  {
    const RefusedRecordings refused("no graph today");
    CHECK_THROWS_WITH(step.take(0.1), ContainsSubstring("no graph today"));
    CHECK(refused.count() == 1);
  }
  CHECK(torch::equal(model->base(), before));
  CHECK(step.state().empty());
  for (int i = 0; i < 5; ++i) step.take(0.1), expected.take(0.1);
  CHECK(relative_error(model->base(), other->base()) < 1e-12);
}

TEST_CASE("a captured step notices that the likelihood's data lie elsewhere", "[train][captured][quick]") {
  SmallProblem problem;
  problem.likelihood = GENERATE("gridded", "exact", "loose");
  CAPTURE(problem.likelihood);
  auto model = problem.model();
  const auto objective = problem.objective();
  CapturedStep step(model.ptr(), objective, TrainOptions(), "tested");
  step.take(0.1);
  auto buffer = objective.likelihood().as_module().named_buffers().front().value();
  const auto kept = buffer.variable_data();
  buffer.set_data(buffer.clone());
  CHECK_THROWS_WITH(step.take(0.1), ContainsSubstring("was moved or cast"));
}
