#include "catch.h"

#include <cmath>

#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/trainer.h>

#include "problems.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// 0, until its call number `at` (0 is the first epoch's): then what `broken` makes of the sky's sum.
Term breaks_at(std::int64_t at, const std::function<Tensor(const Tensor&)>& broken) {
  const auto calls = std::make_shared<std::int64_t>(0);
  return Term("mine", 1.0, [=](const ModelOutput& out) {
    const auto sum = out.sky.sum({-3, -2, -1});
    return (*calls)++ >= at ? broken(sum) : sum * 0.0;
  });
}

/// Breaks once the first base pixel has moved this far up or down, like a function with an edge; repeats itself exactly.
Term has_an_edge(double distance, const std::function<Tensor(const Tensor&)>& broken, const GriddedNet& model) {
  const double start = model->base().flatten()[0].item<double>();
  return Term("mine", 1.0, [=](const ModelOutput& out) {
    const auto sum = out.sky.sum({-3, -2, -1});
    const bool beyond = std::abs(out.base.flatten()[0].item<double>() - start) >= distance;
    return beyond ? broken(sum) : sum * 0.0;
  });
}

Tensor not_a_number(const Tensor& sum) { return sum * std::numeric_limits<double>::quiet_NaN(); }
/// 0, with the gradient of a square root at 0.
Tensor infinite_gradient(const Tensor& sum) { return ((sum - sum.detach()).square()).sqrt(); }

/// Breaks at exactly these base pixels; repeats itself exactly.
Term breaks_at_base(Tensor base) {
  return Term("mine", 1.0, [base = std::move(base)](const ModelOutput& out) {
    const auto sum = out.sky.sum({-3, -2, -1});
    return base.defined() && at::equal(out.base, base) ? not_a_number(sum) : sum * 0.0;
  });
}

}  // namespace

TEST_CASE("a fit whose loss breaks at any epoch ends at the last one whose loss was finite", "[train]") {
  const auto [optimizer, rate] = GENERATE(std::pair(OptimizerKind::adam, 0.3), std::pair(OptimizerKind::sgd, 1.0));
  const SmallProblem problem;
  auto whole = problem.model();
  std::vector<Tensor> bases = {whole->base().detach().clone()};
  const auto keep = [&](const Progress& progress) {
    bases.push_back(progress.model.base().detach().clone());
    return CallbackAction::proceed;
  };
  const auto options = TrainOptions().optimizer(optimizer).learning_rate(rate).epochs(60);
  const auto history =
      Trainer(whole, problem.objective({breaks_at_base({})}), TrainOptions(options).callbacks({keep})).fit().history;

  // States are kept every 25 epochs: breaks just before, at and after those, and after the last update.
  for (const std::size_t broken : {1, 2, 24, 25, 26, 27, 49, 50, 51, 52, 59, 60}) {
    INFO("epoch " << broken);
    const TemporaryFolder folder;
    auto model = problem.model();
    const auto checkpointed = TrainOptions(options).checkpoint(folder / "checkpoint.safetensors");
    const auto result = Trainer(model, problem.objective({breaks_at_base(bases[broken])}), checkpointed).fit();
    REQUIRE(result.stop_reason == StopReason::diverged);
    CHECK(result.epochs == static_cast<std::int64_t>(broken) - 1);
    CHECK(at::equal(model->base(), bases[broken - 1]));
    auto before = history;
    before.resize(broken - 1);
    CHECK(same_history(result.history, before));
    CHECK(result.loss.values == history[broken - 1].values);
    CHECK_THAT(result.diagnosis,
               ContainsSubstring("mine is nan at epoch " + std::to_string(broken)) && ContainsSubstring("smaller learning rate"));

    const auto checkpoint = read_checkpoint(folder / "checkpoint.safetensors");
    REQUIRE(checkpoint);
    CHECK(checkpoint->epochs == result.epochs);
    CHECK(at::equal(checkpoint->state.at("model.bcube.base_cube"), model->base()));
  }
}

TEST_CASE("a gradient that is not finite ends the fit before its update", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective({has_an_edge(3.0, infinite_gradient, model)});
  const auto result = Trainer(model, objective, TrainOptions().epochs(200)).fit();
  REQUIRE(result.stop_reason == StopReason::diverged);
  CHECK(result.epochs > 5);
  CHECK(model->base().isfinite().all().item<bool>());
  CHECK(std::isfinite(result.loss.total()));
  CHECK_THAT(result.diagnosis, ContainsSubstring("the gradient of mine is not finite at epoch " + std::to_string(result.epochs)));
}

TEST_CASE("a loss that is broken from the start blames the start", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto before = model->base().detach().clone();
  const auto result = Trainer(model, problem.objective({breaks_at(0, not_a_number)}), TrainOptions().epochs(10)).fit();
  CHECK(result.stop_reason == StopReason::diverged);
  CHECK(result.epochs == 0);
  CHECK(result.history.empty());
  CHECK(at::equal(model->base(), before));
  CHECK_THAT(result.diagnosis, ContainsSubstring("mine is nan at epoch 0") && ContainsSubstring("start image"));
}

TEST_CASE("a last update that breaks the image is seen too", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto result = Trainer(model, problem.objective({breaks_at(10, not_a_number)}), TrainOptions().epochs(10)).fit();
  CHECK(result.stop_reason == StopReason::diverged);
  CHECK(model->base().isfinite().all().item<bool>());
  CHECK_THAT(result.diagnosis, ContainsSubstring("at epoch 10"));
}

TEST_CASE("a learning rate beyond reason diverges with every optimiser, and the image stays finite", "[train][quick]") {
  const auto [optimizer, rate] = GENERATE(std::pair(OptimizerKind::sgd, 1e200), std::pair(OptimizerKind::adam, 1e200));
  const SmallProblem problem;
  auto model = problem.model();
  const auto result =
      Trainer(model, problem.objective(), TrainOptions().optimizer(optimizer).learning_rate(rate).epochs(100)).fit();
  CHECK(result.stop_reason == StopReason::diverged);
  CHECK(model->make_sky().isfinite().all().item<bool>());
  CHECK_THAT(result.diagnosis, ContainsSubstring("nll is inf at epoch 1") && ContainsSubstring("1e+200"));
}

TEST_CASE("an update that overflows is found although the image stays finite", "[train][quick]") {
  const SmallProblem problem{.dtype = torch::kFloat32};
  auto model = problem.model();
  // A gradient that lowers every pixel: the base overflows to -infinity, where the image is 0.
  const auto push = Term("push", 1e30, [](const ModelOutput& out) { return out.base.sum({-3, -2, -1}); });
  const auto options = TrainOptions().optimizer(OptimizerKind::sgd).learning_rate(1e10).epochs(10);
  const auto result = Trainer(model, problem.objective({push}), options).fit();
  CHECK(result.stop_reason == StopReason::diverged);
  CHECK(result.epochs == 0);
  CHECK(model->base().isfinite().all().item<bool>());
  CHECK_THAT(result.diagnosis, ContainsSubstring("the update of epoch 0 overflowed"));
}

TEST_CASE("L-BFGS that meets what is not a number ends with a finite image", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective({has_an_edge(0.3, not_a_number, model)});
  const auto result =
      Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::lbfgs).learning_rate(1.0).epochs(60)).fit();
  CHECK(model->base().isfinite().all().item<bool>());
  CHECK(std::isfinite(result.loss.total()));
  CHECK(result.stop_reason == StopReason::diverged);
  CHECK_THAT(result.diagnosis, ContainsSubstring("mine is nan"));
}
