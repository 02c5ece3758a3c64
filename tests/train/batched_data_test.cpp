// Problems of a batch with data of their own.
#include "catch.h"

#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/batched_likelihood.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/eager_step.h>
#include <mpol_cpp/train/steps/fused_loss.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Three problems, each with data in other cells, or on other baselines.
struct OwnData {
  GridCoords coords{0.05, 12};
  torch::Dtype dtype = torch::kFloat64;
  std::string kind = "gridded";
  Normalize normalize = Normalize::cells;
  PixelMapping mapping = softplus_mapping();

  std::shared_ptr<Likelihood> likelihood(std::uint64_t problem) const {
    if (kind == "exact") {
      const auto visibilities = random_visibilities(coords, 2, 10 * problem + 7);
      return ExactLikelihood(coords, visibilities, ChannelMap::cube(2)).ptr();
    }
    auto gridded = GriddedLikelihood(random_dataset(coords, 2, 10 * problem + 7));
    gridded->to(dtype);
    return gridded.ptr();
  }
  std::vector<Term> terms() const { return {terms::sparsity(1e-3), terms::tv_image(2e-3)}; }
  Objective alone(std::uint64_t problem) const { return Objective(likelihood(problem), terms(), normalize); }
  Objective together() const {
    return Objective(BatchedLikelihood(std::vector{likelihood(0), likelihood(1), likelihood(2)}), terms(), normalize);
  }
  Tensor start() const { return normal({3, 2, coords.npix(), coords.npix()}, torch::kFloat64, 3); }
  GriddedNet model(const Tensor& base) const {
    return GriddedNet(GriddedNetOptions(coords).base_cube(base.clone()).dtype(dtype).pixel_mapping(mapping));
  }
};

/// What a fit of all and fits of each end with.
struct Ends {
  Tensor batch, alone;
  TrainResult result;
  std::vector<TrainResult> results;
};

double total_of(const std::vector<TrainResult>& results) {
  return std::accumulate(results.begin(), results.end(), 0.0,
                         [](double sum, const auto& each) { return sum + each.loss.total(); });
}

Ends fit_both(const OwnData& own, const TrainOptions& of_batch, const TrainOptions& of_one) {
  auto model = own.model(own.start());
  auto result = Trainer(model, own.together(), of_batch).fit();
  std::vector<Tensor> bases;
  std::vector<TrainResult> results;
  for (std::int64_t k = 0; k < 3; ++k) {
    auto single = own.model(own.start()[k]);
    results.push_back(Trainer(single, own.alone(static_cast<std::uint64_t>(k)), of_one).fit());
    bases.push_back(single->base().detach());
  }
  return {model->base().detach(), at::stack(bases), std::move(result), std::move(results)};
}

}  // namespace

TEMPLATE_TEST_CASE("each problem of a batch with data of its own is fitted as it would be alone", "[train][quick]", float,
                   double) {
  OwnData own;
  own.dtype = dtype_of<TestType>();
  std::tie(own.kind, own.normalize) = GENERATE(table<std::string, Normalize>(
      {{"gridded", Normalize::cells}, {"exact", Normalize::cells}, {"exact", Normalize::visibilities}}));
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd);
  CAPTURE(own.kind, to_string(own.normalize), to_string(step), to_string(optimizer));
  const auto options = TrainOptions().optimizer(optimizer).learning_rate(0.1).epochs(40).step(step);
  const auto ends = fit_both(own, options, options);
  CHECK(ends.result.step == step);
  if (step == StepKind::fused) CHECK(same(ends.batch, ends.alone));
  else CHECK(relative_error(ends.batch, ends.alone) < tolerance<TestType>(1e-11, 2e-4));
  CHECK(ends.result.loss.total() == Approx(total_of(ends.results)).epsilon(tolerance<TestType>(1e-11, 1e-4)));
}

TEMPLATE_TEST_CASE("problems with data of their own end by themselves", "[train][quick]", float, double) {
  OwnData own;
  own.dtype = dtype_of<TestType>();
  const auto one = TrainOptions().learning_rate(0.1).epochs(600).stop_relative(3e-2).stop_window(5).step(StepKind::fused);
  const auto ends = fit_both(own, TrainOptions(one).stop_scope(StopScope::each), one);
  REQUIRE(ends.result.problem_epochs.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) CHECK(ends.result.problem_epochs[k] == ends.results[k].epochs);
  CHECK(same(ends.batch, ends.alone));
}

TEMPLATE_TEST_CASE("POGM moves problems with data of their own as it would each alone", "[train][quick]", float, double) {
  OwnData own;
  own.dtype = dtype_of<TestType>();
  own.kind = GENERATE("gridded", "exact");
  own.mapping = nonnegative_mapping();
  const auto optimizer = GENERATE(OptimizerKind::pogm, OptimizerKind::fista);
  const auto options = TrainOptions().optimizer(optimizer).tolerance(1e-14).epochs(50);
  const auto ends = fit_both(own, options, options);
  CHECK(relative_error(ends.batch, ends.alone) < tolerance<TestType>(1e-11, 1e-4));
  CHECK(ends.result.loss.total() == Approx(total_of(ends.results)).epsilon(tolerance<TestType>(1e-11, 1e-5)));
}

TEMPLATE_TEST_CASE("a GPU's fused step takes data of each problem, emulated", "[train][quick]", float, double) {
  OwnData own;
  own.dtype = dtype_of<TestType>();
  own.kind = GENERATE("gridded", "exact");
  const auto options = TrainOptions().learning_rate(0.1);
  auto model = own.model(own.start()), twin = own.model(own.start());
  FusedStep step(model.ptr(), own.together(), options, "tested", &mpol::detail::make_gpu_engine);
  CHECK(step.disagreement().empty());
  EagerStep eager(twin.ptr(), own.together(), options, "tested");
  for (int i = 0; i < 6; ++i) {
    const auto losses = step.take(0.1).losses.clone(), expected = eager.take(0.1).losses;
    REQUIRE(losses.size(1) == 3);
    CHECK(relative_error(losses, expected) < tolerance<TestType>(1e-10, 2e-4));
  }
  CHECK(relative_error(model->base(), twin->base()) < tolerance<TestType>(1e-9, 2e-3));
}

TEST_CASE("the fused loss takes data of each problem", "[train][quick]") {
  const OwnData own;
  const auto objective = own.together();
  auto model = own.model(own.start());
  FusedLoss loss(model, objective);
  const auto base = model->base().detach().clone().requires_grad_();
  const auto total = loss(base);
  const auto expected = objective.evaluate(model);
  CHECK(relative_error(total, expected.total) < 1e-12);
  CHECK(relative_error(loss.losses(), expected.table()) < 1e-12);
  CHECK(relative_error(torch::autograd::grad({total.sum()}, {base})[0],
                       torch::autograd::grad({expected.total.sum()}, {model->base()})[0]) < 1e-10);
}

TEST_CASE("data of another number of problems are refused, and so is one normalizer of many", "[train][quick]") {
  const OwnData own;
  const auto objective = own.together();
  REQUIRE(objective.normalizers().size() == 3);
  CHECK(objective.normalizers()[1] == own.likelihood(1)->normalizer());
  CHECK_THROWS_AS(objective.normalizer(), ValueError);
  CHECK(objective.divided_by(5).normalizer() == 5);
  auto two = own.model(own.start().narrow(0, 0, 2));
  CHECK_FALSE(FusedStep::obstacle(*two, objective, TrainOptions()).empty());
  CHECK_THROWS_AS(Trainer(two, objective, TrainOptions().epochs(1)).fit(), ShapeError);
  auto three = own.model(own.start());
  CHECK_FALSE(CapturedStep::obstacle(*three, objective, TrainOptions()).empty());
}
