#include "catch.h"

#include <cmath>

#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "temporary_folder.h"
#include "threads.h"
#include "solvers/convex_problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Fitted {
  TrainResult result;
  Tensor base, sky;
};

Fitted fitted(const Tensor& base, const Objective& objective, double tolerance, std::int64_t epochs = 20000,
              Smoothing smoothing = Smoothing::hann) {
  auto model = positive_model(base.clone(), smoothing);
  auto result =
      Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(tolerance).epochs(epochs)).fit();
  auto sky = model->make_sky().detach().clone();
  return {std::move(result), model->base().detach().clone(), std::move(sky)};
}

double total_at(const Tensor& base, const Objective& objective, Smoothing smoothing = Smoothing::hann) {
  const torch::NoGradGuard no_grad;
  auto model = positive_model(base, smoothing);
  return objective.evaluate(*model).total.sum().item<double>();
}

}  // namespace

TEMPLATE_TEST_CASE("a convex objective has the objective's losses and the gradient of its smooth part", "[solvers][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  for (const auto* name : {"exact", "gridded", "loose"}) {
    for (const auto& problems : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}}) {
      CAPTURE(name, problems.size());
      auto model = positive_model(base_image(dtype, 4, problems), smoothing);
      const Objective objective(likelihood_of(name, dtype), every_convex_term());
      ConvexObjective function(model.ptr(), objective);
      const auto images = function.images();
      auto gradient = at::full_like(images, 7);
      const auto variation = function.evaluate(images, gradient);

      const auto value = objective.evaluate(*model);
      const auto table = value.table().to(torch::kCPU, torch::kFloat64).flatten();
      const auto losses = at::tensor(function.losses(), torch::kFloat64);
      CHECK(relative_error(losses, table) < tolerance<TestType>(1e-12, 1e-5));
      const auto tv = value.table()[3].to(torch::kFloat64);
      CHECK(relative_error(at::tensor(variation, torch::kFloat64), tv) < tolerance<TestType>(1e-12, 1e-5));
      // All but the total variation, whose gradient it has not.
      auto smooth = value.nll.sum();
      for (const std::size_t term : {0, 2, 3, 4}) smooth = smooth + value.terms[term].sum();
      smooth.backward();
      CHECK(relative_error(gradient, model->base().grad().view_as(gradient)) < tolerance<TestType>(1e-11, 1e-4));
    }
  }
}

TEST_CASE("the curvature of a convex objective is just above what its gradient shows", "[solvers][quick]") {
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  auto model = positive_model(base_image(torch::kFloat64, 4), smoothing);
  ConvexObjective function(model.ptr(), Objective(likelihood_of("exact", torch::kFloat64), every_convex_term()));
  const auto curvatures = function.curvatures();
  REQUIRE(curvatures.size() == channels);
  const auto images = function.images().clone();
  auto at_images = at::empty_like(images), moved = at::empty_like(images);
  function.evaluate(images, at_images);
  auto direction = normal(images.sizes(), torch::kFloat64, 9);
  std::vector<double> largest(channels, 0);
  for (int step = 0; step < 300; ++step) {  // power steps of our own, from another direction
    direction = direction / direction.square().sum({-2, -1}, true).sqrt();
    function.evaluate(images + direction, moved);
    direction = moved - at_images;
    for (std::int64_t c = 0; c < channels; ++c) largest[c] = direction[0][c].square().sum().sqrt().item<double>();
  }
  for (std::size_t c = 0; c < channels; ++c) {
    CHECK(curvatures[c] >= 0.999 * largest[c]);
    CHECK(curvatures[c] <= 1.05 * largest[c]);
  }
}

TEST_CASE("a converged image cannot be bettered: Karush, Kuhn and Tucker", "[solvers][quick]") {
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  const auto objective = sparse(torch::kFloat64);
  const auto end = fitted(base_image(torch::kFloat64, 4), objective, 1e-8, 20000, smoothing);
  const auto total = [&](const Tensor& base) { return total_at(base, objective, smoothing); };
  REQUIRE(end.result.stop_reason == StopReason::converged);
  CHECK(end.base.min().item<double>() >= 0);
  CHECK((end.base == 0).sum().item<std::int64_t>() > 100);  // positivity matters
  const double least = end.result.loss.total(), own = total(end.base);
  CHECK(own == Approx(least).epsilon(1e-12));
  const double regularizers = least - end.result.loss.nll();
  // Convex: what no small step in any direction betters is the minimum.
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto other = base_image(torch::kFloat64, 20 + seed);
    for (const double step : {1e-6, 1e-4, 1e-2}) {
      CHECK(total(end.base + step * (other - end.base)) >= least - 1e-7 * regularizers);
    }
  }
  CHECK(total(end.base * 1.001) >= least - 1e-7 * regularizers);
  CHECK(total(end.base * 0.999) >= least - 1e-7 * regularizers);
}

TEMPLATE_TEST_CASE("the converged image is the same from any start, in any dtype and on any number of threads",
                   "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto reference = fitted(base_image(torch::kFloat64, 4), sparse(torch::kFloat64), 1e-7);
  const double peak = reference.sky.max().item<double>(), flux = reference.sky.sum().item<double>();
  const auto objective = sparse(dtype);
  const auto zeros = base_image(dtype, 4) * 0;
  auto spike = zeros.clone();
  spike.select(-1, 3).select(-1, 5).fill_(200);
  for (const auto& start : {base_image(dtype, 4), zeros, zeros + 30, spike}) {
    const auto end = fitted(start, objective, 1e-5);
    CHECK(end.result.stop_reason == StopReason::converged);
    CHECK(relative_error(end.sky, reference.sky) < 1e-3);
    CHECK(end.sky.sum(torch::kFloat64).template item<double>() == Approx(flux).epsilon(3e-3));
    CHECK(end.sky.max().template item<double>() == Approx(peak).epsilon(1e-3));
  }
  const auto bits_on = [&](int threads) {
    const Threads own(threads);
    return fitted(base_image(dtype, 4), objective, 1e-5).base;
  };
  CHECK(same(bits_on(1), bits_on(2)));
}

TEST_CASE("the optimum is below what Adam reaches", "[solvers]") {
  const auto objective = sparse(torch::kFloat64);
  const auto end = fitted(base_image(torch::kFloat64, 4), objective, 1e-4);
  GriddedNet model(GriddedNetOptions(small_grid).nchan(channels).start(0).dtype(torch::kFloat64));
  const auto adam = Trainer(model, objective, TrainOptions().learning_rate(0.1).epochs(4000)).fit();
  CHECK(end.result.loss.total() <= adam.loss.total());
  CHECK(end.result.loss.total() > 0.9 * adam.loss.total());
}

TEST_CASE("a mask keeps pixels dark, and the optimum is that of the others", "[solvers][quick]") {
  auto mask = at::zeros({small_grid.npix(), small_grid.npix()}, torch::kFloat64);
  mask.narrow(0, 6, 12).narrow(1, 6, 12).fill_(1);
  auto model = positive_model(base_image(torch::kFloat64, 4), mask);
  const auto objective = sparse(torch::kFloat64);
  const auto result =
      Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-6).epochs(20000)).fit();
  CHECK(result.stop_reason == StopReason::converged);
  CHECK((model->base() * (1 - mask)).abs().max().item<double>() == 0);
  CHECK((model->base() * mask).max().item<double>() > 0);
}

TEST_CASE("base pixels below 0 are dark ones from the first loss on", "[solvers][quick]") {
  const auto fitted = [](double start) {
    auto model = positive_model(at::full({channels, small_grid.npix(), small_grid.npix()}, start, torch::kFloat64));
    const auto options = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-6).epochs(5000);
    return Trainer(model, sparse(torch::kFloat64), options).fit();
  };
  const auto below = fitted(-3), empty = fitted(0);
  CHECK(below.stop_reason == StopReason::converged);
  CHECK(same_history(below.history, empty.history));
}

TEST_CASE("fits by POGM and ADMM go on from their checkpoints bit for bit", "[solvers][quick]") {
  struct Case {
    OptimizerKind optimizer;
    std::string likelihood;
    std::int64_t middle, end;
  };
  const auto fit = GENERATE(Case{OptimizerKind::pogm, "exact", 70, 150}, Case{OptimizerKind::admm, "exact", 33, 60},
                            Case{OptimizerKind::admm, "gridded", 33, 60});
  CAPTURE(to_string(fit.optimizer), fit.likelihood);
  const TemporaryFolder folder;
  const auto objective = [&] {
    return Objective(likelihood_of(fit.likelihood, torch::kFloat32), {terms::sparsity(1e-4), terms::tv_image(3e-4)});
  };
  const auto options = [&](std::int64_t epochs) {
    return TrainOptions().optimizer(fit.optimizer).tolerance(1e-12).epochs(epochs).checkpoint(folder / "c").resume(true);
  };
  auto whole_model = positive_model(base_image(torch::kFloat32, 4));
  auto whole_options = options(fit.end).resume(false);
  whole_options.checkpoint({});
  const auto whole = Trainer(whole_model, objective(), whole_options).fit();
  TrainResult last;
  GriddedNet model{nullptr};
  for (const auto epochs : {std::int64_t{1}, fit.middle, fit.end}) {
    model = positive_model(base_image(torch::kFloat32, 4));
    last = Trainer(model, objective(), options(epochs)).fit();
  }
  CHECK(last.resumed_from == fit.middle);
  CHECK(same(model->base(), whole_model->base()));
  CHECK(same_history(last.history, whole.history));
}

TEST_CASE("what is not convex is refused with what it is", "[solvers][quick]") {
  const auto base = base_image(torch::kFloat64, 4);
  const auto refusal = [&](auto model, const Objective& objective) {
    try {
      Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::pogm).epochs(10)).fit();
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto with = [&](Term term) { return Objective(likelihood_of("exact", torch::kFloat64), {std::move(term)}); };
  CHECK(refusal(positive_model(base), sparse(torch::kFloat64)) == "no error");
  const GriddedNet soft(GriddedNetOptions(small_grid).base_cube(base).dtype(torch::kFloat64));
  CHECK_THAT(refusal(soft, sparse(torch::kFloat64)), ContainsSubstring("the pixel mapping is softplus"));
  CHECK_THAT(refusal(positive_model(base), with(terms::entropy(1e-3, 1e-4, 10))), ContainsSubstring("entropy"));
  CHECK_THAT(refusal(positive_model(base), with(terms::tv_image(1e-3, 1e-3))), ContainsSubstring("epsilon"));
  CHECK_THAT(refusal(positive_model(base), with(Term("own", 1,
                                                     [](const ModelOutput& out) {
                                                       return out.sky.sum({-3, -2, -1});
                                                     }))),
             ContainsSubstring("own"));
  const auto student = NoiseLikelihood(small_grid, source_with_noise(), ChannelMap::cube(channels), NoiseModel::student(4)).ptr();
  CHECK_THAT(refusal(positive_model(base), Objective(student, {})), ContainsSubstring("is no quadratic function of the image"));
}

TEMPLATE_TEST_CASE("the certified gap is above the true one, and closes", "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  const double least =
      fitted(base_image(torch::kFloat64, 4), sparse(torch::kFloat64), 1e-9, 20000, smoothing).result.loss.total();
  const auto objective = sparse(dtype);
  double last = 1e300;
  for (const std::int64_t epochs : {4, 16, 64, 256}) {
    const auto end = fitted(base_image(dtype, 4), objective, 1e-12, epochs, smoothing);
    REQUIRE(end.result.gap);
    CAPTURE(epochs, *end.result.gap, end.result.loss.total() - least);
    CHECK(*end.result.gap >= end.result.loss.total() - least - 1e-6 * least);
    CHECK(*end.result.gap <= last + 1e-6 * least);
    last = *end.result.gap;
  }
  CHECK(last < tolerance<TestType>(1e-5, 1e-3) * least);
  CHECK_FALSE(fitted(base_image(dtype, 4), sparse(dtype, 0, 1e-3), 1e-3).result.gap);  // no dual point without sparsity
}
