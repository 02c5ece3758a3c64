// Looking at a fit on its way.
#include "catch.h"

#include <cmath>
#include <vector>

#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/objective/fit_probe.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("a fit that is looked at is the same fit, bit for bit, and what is seen is right", "[train][quick]", float,
                   double) {
  const SmallProblem problem{.dtype = dtype_of<TestType>(), .likelihood = GENERATE("gridded", "exact")};
  const auto options = TrainOptions().learning_rate(0.1).epochs(12);
  auto plain = problem.model(), watched = problem.model();
  const auto objective = problem.objective();
  FitProbe probe(objective, *watched);
  const auto start = watched->make_sky().detach().clone();
  std::vector<FitView> views;
  const auto look = [&](const Progress& progress) {
    if (progress.loss.epoch % 4 == 3) views.push_back(probe.look(progress.model));
    return CallbackAction::proceed;
  };
  const auto expected = Trainer(plain, problem.objective(), options).fit();
  const auto result = Trainer(watched, objective, TrainOptions(options).callbacks({look})).fit();
  CHECK(same_history(result.history, expected.history));
  CHECK(torch::equal(watched->base(), plain->base()));
  REQUIRE(views.size() == 3);
  CHECK(torch::equal(views[0].change, views[0].image - start));
  CHECK(torch::equal(views[2].change, views[2].image - views[1].image));
  CHECK(views[2].largest_change == views[2].change.abs().max().template item<double>());
  const auto& last = views.back();
  CHECK(torch::equal(last.image, watched->make_sky().detach()));
  const auto gradient = gradient_of(
      [&](const Tensor& sky) { return objective.evaluate(ModelOutput(problem.coords, watched->base().detach(), sky)).total; },
      last.image);
  CHECK(relative_error(last.gradient, gradient) < tolerance<TestType>(1e-12, 1e-5));
  CHECK(last.gradient_norm == Approx(gradient.to(torch::kFloat64).norm().template item<double>()).epsilon(1e-4));
  REQUIRE(last.flux.size() == 2);
  const double flux = last.image[1].to(torch::kFloat64).sum().template item<double>() * problem.coords.cell_area();
  CHECK(last.flux[1] == Approx(flux));

  probe.set_last({});
  CHECK_FALSE(probe.look(*watched).change.defined());
  probe.set_last({});
  CHECK(std::isnan(probe.look(*watched).largest_change));
}
