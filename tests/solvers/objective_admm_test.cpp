#include "catch.h"

#include <cmath>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/solvers/objective_admm.h>
#include <mpol_cpp/solvers/objective_model.h>
#include <mpol_cpp/train/trainer.h>

#include "../compare.h"
#include "../temporary_folder.h"
#include "convex_problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const std::vector<std::string> likelihoods = {"exact", "gridded", "loose"};

Tensor noise_like(const Tensor& images, std::uint64_t seed) {
  return normal(images.sizes(), torch::kFloat64, seed).to(images.scalar_type());
}

const auto without_check = DataAveragerOptions().scatter_check(ScatterCheck::off);

struct Optimum {
  TrainResult result;
  Tensor base, sky;
};

Optimum optimum_by(OptimizerKind optimizer, const Tensor& base, const Objective& objective, Smoothing smoothing,
                   double tolerance) {
  auto model = positive_model(base.clone(), smoothing);
  const auto options = TrainOptions().optimizer(optimizer).tolerance(tolerance).epochs(20000);
  auto result = Trainer(model, objective, options).fit();
  return {std::move(result), model->base().detach().clone(), model->make_sky().detach().clone()};
}

}  // namespace

TEMPLATE_TEST_CASE("how an objective bends is how its gradient changes, and symmetric", "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  for (const auto& name : likelihoods) {
    for (const auto& problems : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}}) {
      CAPTURE(name, problems.size());
      auto model = positive_model(base_image(dtype, 4, problems), smoothing);
      ConvexObjective function(model.ptr(), Objective(likelihood_of(name, dtype), every_convex_term()));
      const auto images = function.images();
      const auto direction = noise_like(images, 5), other = noise_like(images, 6);
      CHECK_THROWS_AS(function.bend(direction), ValueError);
      function.prepare_bend();
      auto here = at::empty_like(images), there = at::empty_like(images);
      function.evaluate(images, here);
      function.evaluate(images + direction, there);
      const auto bent = function.bend(direction);
      CHECK(relative_error(bent, there - here) < tolerance<TestType>(1e-10, 2e-4));
      CHECK(inner_product(bent, other) ==
            Approx(inner_product(function.bend(other), direction)).epsilon(tolerance<TestType>(1e-10, 1e-4)));
    }
  }
}

TEMPLATE_TEST_CASE("the x-step of ADMM is the minimum of f and the quadratic of the constraint", "[solvers][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  for (const auto& name : likelihoods) {
    CAPTURE(name, smoothing == Smoothing::hann);
    auto model = positive_model(base_image(dtype, 4, {2}), smoothing);
    ConvexObjective function(model.ptr(), Objective(likelihood_of(name, dtype), {terms::sparsity(0.02), terms::tv_image(0.01)}));
    const auto images = function.images();
    auto gradient = at::empty_like(images);
    ObjectiveModel step(function, images, gradient, {.tolerance = tolerance<TestType>(1e-9, 1e-4), .most_iterations = 2000});
    function.evaluate(images, gradient);
    const auto v = noise_like(images, 5);
    const auto rho = at::tensor({1e-3 * step.curvature(), 1e-1 * step.curvature()}, dtype).view({2, 1, 1, 1});
    const auto x = step.minimize(v, rho, images);
    auto slope = at::empty_like(images);
    function.evaluate(x, slope);
    const auto pull = (x - v) * rho;
    CHECK(relative_error(slope, -pull) < tolerance<TestType>(1e-7, 2e-3));
    // One transform pair where cells are gridded and pixels free; all but the border of that behind the Hann convolution.
    const double distance = step.distance_to_diagonal();
    if (name == "gridded") CHECK(distance < (smoothing == Smoothing::none ? tolerance<TestType>(1e-12, 1e-5) : 0.3));
    else CHECK(distance > 1e-3);
  }
}

TEMPLATE_TEST_CASE("a problem that is solved stands still in the x-step of ADMM while another goes on", "[solvers][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  for (const auto& name : likelihoods) {
    CAPTURE(name);
    auto model = positive_model(base_image(dtype, 4, {2}), Smoothing::hann);
    ConvexObjective function(model.ptr(), Objective(likelihood_of(name, dtype), {terms::sparsity(0.02)}));
    const auto images = function.images().clone();
    auto gradient = at::empty_like(images);
    function.evaluate(images, gradient);
    ObjectiveModel step(function, images, gradient, {.tolerance = tolerance<TestType>(1e-12, 1e-6), .most_iterations = 300});
    const auto rho = at::full({2, 1, 1, 1}, 1e-2 * step.curvature(), images.options());
    auto v = noise_like(images, 5);
    v[0].copy_(images[0] + gradient[0] / rho[0]);  // whose minimum is where the images are
    const auto x = step.minimize(v, rho, images);
    const auto pull = (v[0] - images[0]).norm().template item<double>();
    CHECK((x[0] - images[0]).norm().template item<double>() < tolerance<TestType>(1e-12, 1e-5) * pull);
    CHECK(torch::isfinite(x).all().template item<bool>());
  }
}

TEMPLATE_TEST_CASE("ADMM ends at POGM's optimum", "[solvers]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  for (const auto* name : {"exact", "gridded"}) {
    CAPTURE(name, smoothing == Smoothing::hann);
    const auto objective = [&](torch::Dtype own) {
      std::vector<Term> terms = {terms::sparsity(1e-3), terms::tv_image(5e-4)};
      if (name == std::string("exact")) return Objective(likelihood_of(name, own), terms);
      terms.push_back(terms::tsv(1e-6));
      return Objective(GriddedLikelihood(DataAverager(small_grid, source_with_noise(), without_check).to_dataset()).ptr(), terms);
    };
    const auto pogm =
        optimum_by(OptimizerKind::pogm, base_image(torch::kFloat64, 4), objective(torch::kFloat64), smoothing, 1e-7);
    const auto admm = optimum_by(OptimizerKind::admm, base_image(dtype, 9), objective(dtype), smoothing, 1e-5);
    CHECK(admm.result.stop_reason == StopReason::converged);
    CHECK(admm.result.step_reason == "admm");
    CHECK(admm.base.min().template item<double>() >= 0);
    CHECK((admm.base == 0).sum().template item<std::int64_t>() > 100);
    const double least = pogm.result.loss.total(), regularizers = least - pogm.result.loss.nll();
    CHECK(admm.result.loss.total() - least < 1e-4 * regularizers + tolerance<TestType>(0, 1e-6) * least);
    CHECK(admm.result.loss.total() - least > -1e-5 * regularizers - tolerance<TestType>(0, 1e-6) * least);
    CHECK(relative_error(admm.sky, pogm.sky) < 1e-2);
    CHECK(admm.sky.sum(torch::kFloat64).template item<double>() ==
          Approx(pogm.sky.sum(torch::kFloat64).template item<double>()).epsilon(1e-3));
    REQUIRE(admm.result.gap);
    CHECK(*admm.result.gap >= admm.result.loss.total() - least - 1e-6 * least);
  }
}

TEST_CASE("a mask keeps pixels dark in ADMM", "[solvers][quick]") {
  auto mask = at::zeros({small_grid.npix(), small_grid.npix()}, torch::kFloat64);
  mask.narrow(0, 6, 12).narrow(1, 6, 12).fill_(1);
  const auto fit_by = [&](OptimizerKind optimizer) {
    auto model = positive_model(base_image(torch::kFloat64, 4), mask);
    Trainer(model, sparse(torch::kFloat64), TrainOptions().optimizer(optimizer).tolerance(1e-6).epochs(20000)).fit();
    return model->base().detach().clone();
  };
  const auto base = fit_by(OptimizerKind::admm);
  CHECK((base * (1 - mask)).abs().max().item<double>() == 0);
  CHECK(relative_error(base, fit_by(OptimizerKind::pogm)) < 1e-2);
}

TEST_CASE("a state of other images, and options out of range, are refused by ADMM by name", "[solvers][quick]") {
  auto model = positive_model(base_image(torch::kFloat64, 4));
  ConvexObjective function(model.ptr(), sparse(torch::kFloat64));
  ObjectiveAdmm admm(function, function.images());
  admm.iterate();
  for (const auto* name : {"decreases", "gradient", "regularizers", "z", "rho"}) {
    auto state = admm.state();
    state[name] = at::zeros({7}, torch::kFloat32);
    CAPTURE(name);
    CHECK_THROWS_AS(admm.load_state(state), FileError);
  }
  CHECK_THROWS_WITH(ObjectiveAdmm(function, function.images(), {.passes = 0}), ContainsSubstring("0 passes"));
  CHECK_THROWS_WITH(ObjectiveAdmm(function, function.images(), {.rho = 0}), ContainsSubstring("rho is 0"));
  CHECK_THROWS_WITH(ObjectiveAdmm(function, function.images(), {.model = {.tolerance = 0}}), ContainsSubstring("to 0 in 50"));
}
