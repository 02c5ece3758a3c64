// Convex objectives whose terms join channels.
#include "catch.h"

#include <cmath>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/train/trainer.h>

#include "../compare.h"
#include "../temporary_folder.h"
#include "../threads.h"
#include "convex_problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t depth = 5;

Tensor cube(torch::Dtype dtype, std::uint64_t seed, const std::vector<std::int64_t>& problems = {}) {
  auto shape = problems;
  for (const auto extent : {depth, small_grid.npix(), small_grid.npix()}) shape.push_back(extent);
  return (uniform(shape, torch::kFloat64, seed) * 2).to(dtype);
}

/// A source that shines in the later channels.
std::shared_ptr<Likelihood> line_likelihood() {
  const auto noise = random_visibilities(small_grid, depth, 7);
  const auto fluxes = at::tensor({0.0, 0.1, 0.5, 1.0, 0.9}, torch::kFloat64).view({depth, 1});
  return ExactLikelihood(small_grid, Visibilities(noise.baselines(), noise.data() * 0.3 + fluxes, noise.weights()),
                         ChannelMap::cube(depth))
      .ptr();
}

enum class Joined { differences, norms, smooth, slopes, all };

Objective joined(Joined which, double sparsity = 2e-4) {
  std::vector<Term> terms = {terms::sparsity(sparsity), terms::tv_image(1e-4)};
  if (which == Joined::differences || which == Joined::all) terms.push_back(terms::tv_channel(1e-4));
  if (which == Joined::norms || which == Joined::all) terms.push_back(terms::group_sparsity(2e-4));
  if (which == Joined::smooth || which == Joined::all) terms.push_back(terms::spectral_smoothness(1e-5));
  if (which == Joined::slopes || which == Joined::all) terms.push_back(terms::tv_slope(1e-4));
  return Objective(line_likelihood(), terms);
}

struct CubeFit {
  TrainResult result;
  Tensor base, sky;
};

CubeFit fit_of_cube(const Objective& objective, const Tensor& start, OptimizerKind optimizer, double tolerance,
                    std::int64_t epochs = 30000, Smoothing smoothing = Smoothing::hann) {
  auto model = positive_model(start.clone(), smoothing);
  auto result = Trainer(model, objective, TrainOptions().optimizer(optimizer).tolerance(tolerance).epochs(epochs)).fit();
  return {std::move(result), model->base().detach().clone(), model->make_sky().detach().clone()};
}

double total_of_cube(const Tensor& base, const Objective& objective, Smoothing smoothing) {
  const torch::NoGradGuard no_grad;
  auto model = positive_model(base, smoothing);
  return objective.evaluate(*model).total.sum().item<double>();
}

}  // namespace

TEMPLATE_TEST_CASE("an objective that joins channels has the losses of its terms and the gradient of its smooth part",
                   "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const auto& problems : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{2}}) {
    auto model = positive_model(cube(dtype, 4, problems));
    const auto objective = joined(Joined::all);
    ConvexObjective function(model.ptr(), objective);
    CHECK(function.mixes_images());
    const auto images = function.images();
    auto gradient = at::full_like(images, 7);
    const auto simple = function.evaluate(images, gradient);
    const auto value = objective.evaluate(*model);
    const auto table = value.table().to(torch::kCPU, torch::kFloat64);
    CHECK(relative_error(at::tensor(function.losses(), torch::kFloat64), table.flatten()) < tolerance<TestType>(1e-12, 1e-5));
    // Of total, nll, sparsity, tv, tv_channel, group, smoothness, tv_slope.
    const auto expected = table[3] + table[4] + table[5] + table[7];
    CHECK(relative_error(at::tensor(simple, torch::kFloat64), expected.flatten()) < tolerance<TestType>(1e-12, 1e-5));
    (value.nll.sum() + value.terms[0].sum() + value.terms[4].sum()).backward();
    CHECK(relative_error(gradient, model->base().grad().view_as(gradient)) < tolerance<TestType>(1e-11, 1e-4));
  }
}

TEST_CASE("the curvatures of a cube bound how its smooth part bends", "[solvers][quick]") {
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  const double weight = GENERATE(1e-6, 1e-3, 1.0);  // little beside the data's curvature, and far more
  auto model = positive_model(cube(torch::kFloat64, 4), smoothing);
  ConvexObjective function(model.ptr(),
                           Objective(line_likelihood(), {terms::sparsity(1e-3), terms::spectral_smoothness(weight)}));
  const auto curvatures = at::tensor(function.curvatures(), torch::kFloat64).view({depth, 1, 1});
  const auto images = function.images().clone();
  auto at_images = at::empty_like(images), moved = at::empty_like(images);
  function.evaluate(images, at_images);
  // The largest eigenvalue of L^-1/2 H L^-1/2 by power steps of our own: 1 or just below.
  auto direction = normal(images.sizes(), torch::kFloat64, 9);
  double largest = 0;
  for (int step = 0; step < 400; ++step) {
    direction = direction / direction.norm();
    function.evaluate(images + direction / curvatures.sqrt(), moved);
    direction = (moved - at_images) / curvatures.sqrt();
    largest = direction.norm().item<double>();
  }
  CAPTURE(weight, largest);
  CHECK(largest <= 1.001);
  CHECK(largest > 0.4);  // the sum of two bounds
}

TEST_CASE("a converged cube cannot be bettered, and its gap is certified", "[solvers][quick]") {
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  const auto which = GENERATE(Joined::differences, Joined::norms, Joined::smooth, Joined::slopes, Joined::all);
  CAPTURE(static_cast<int>(which));
  const auto objective = joined(which);
  const auto end = fit_of_cube(objective, cube(torch::kFloat64, 4), OptimizerKind::pogm, 1e-7, 30000, smoothing);
  REQUIRE(end.result.stop_reason == StopReason::converged);
  CHECK(end.base.min().item<double>() >= 0);
  CHECK((end.base == 0).sum().item<std::int64_t>() > 300);  // positivity matters
  const double least = end.result.loss.total(), regularizers = least - end.result.loss.nll();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {  // convex: what no small step in any direction betters is the minimum
    const auto other = cube(torch::kFloat64, 20 + seed);
    for (const double step : {1e-6, 1e-4, 1e-2}) {
      CHECK(total_of_cube(end.base + step * (other - end.base), objective, smoothing) >= least - 1e-6 * regularizers);
    }
  }
  // Nor does a little more of one channel, or of what a channel has more than its neighbour.
  for (std::int64_t c = 0; c + 1 < depth; ++c) {
    for (const double factor : {1e-3, -1e-3}) {
      auto base = end.base.clone();
      base[c].mul_(1 + factor);
      CHECK(total_of_cube(base, objective, smoothing) >= least - 1e-6 * regularizers);
      base = end.base.clone();
      base[c].add_((end.base[c + 1] - end.base[c]) * std::abs(factor));
      CHECK(total_of_cube(base, objective, smoothing) >= least - 1e-6 * regularizers);
    }
  }
  const auto early = fit_of_cube(objective, cube(torch::kFloat64, 4), OptimizerKind::pogm, 1e-12, 4, smoothing);
  REQUIRE(early.result.gap);
  REQUIRE(end.result.gap);
  CHECK(*early.result.gap >= early.result.loss.total() - least);
  CHECK(*end.result.gap >= -1e-10 * least);
  CHECK(*end.result.gap < 1e-5 * regularizers);
}

TEST_CASE("ADMM and long fits by Adam end at POGM's optimum of a cube", "[solvers]") {
  const auto which = GENERATE(Joined::differences, Joined::norms, Joined::smooth, Joined::all);
  CAPTURE(static_cast<int>(which));
  const auto objective = joined(which);
  const auto pogm = fit_of_cube(objective, cube(torch::kFloat64, 4), OptimizerKind::pogm, 1e-7);
  const auto admm = fit_of_cube(objective, cube(torch::kFloat64, 9), OptimizerKind::admm, 1e-5);
  const double least = pogm.result.loss.total(), regularizers = least - pogm.result.loss.nll();
  CHECK(admm.result.stop_reason == StopReason::converged);
  CHECK(admm.result.loss.total() - least < 2e-4 * regularizers);
  CHECK(admm.result.loss.total() - least > -1e-5 * regularizers);
  CHECK(relative_error(admm.sky, pogm.sky) < 1e-2);
  GriddedNet model(GriddedNetOptions(small_grid).nchan(depth).start(0).dtype(torch::kFloat64));
  const auto adam = Trainer(model, objective, TrainOptions().learning_rate(0.1).epochs(6000)).fit();
  CHECK(adam.loss.total() >= least - 1e-6 * regularizers);
  CHECK(adam.loss.total() < least + 0.1 * regularizers);
}

TEMPLATE_TEST_CASE("the optimum of a cube is the same from any start, in any dtype and on any number of threads",
                   "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto objective = joined(Joined::all);
  const auto reference = fit_of_cube(objective, cube(torch::kFloat64, 4), OptimizerKind::pogm, 1e-7);
  for (const auto& start : {cube(dtype, 5), cube(dtype, 5) * 0, cube(dtype, 5) * 0 + 10}) {
    const auto end = fit_of_cube(objective, start, OptimizerKind::pogm, 1e-5);
    CHECK(end.result.stop_reason == StopReason::converged);
    CHECK(relative_error(end.sky, reference.sky) < 3e-3);
  }
  const auto bits_on = [&](int threads) {
    const Threads own(threads);
    return fit_of_cube(objective, cube(dtype, 4), OptimizerKind::pogm, 1e-12, 60).base;
  };
  CHECK(same(bits_on(1), bits_on(2)));
}

TEST_CASE("problems whose cubes have other weights end where they end alone", "[solvers][quick]") {
  const auto base = cube(torch::kFloat64, 4, {2});
  auto together = positive_model(base.clone());
  const auto with = [&](const std::vector<double>& differences, const std::vector<double>& norms) {
    return Objective(line_likelihood(), {terms::sparsity(1e-3), terms::tv_channel(1).with_weights(differences),
                                         terms::group_sparsity(1).with_weights(norms)});
  };
  const auto options = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-7).epochs(30000);
  Trainer(together, with({1e-3, 0}, {5e-4, 2e-3}), options).fit();
  for (const std::int64_t problem : {0, 1}) {
    auto alone = positive_model(base[problem].clone());
    const auto own = problem == 0 ? with({1e-3}, {5e-4}) : with({0}, {2e-3});
    Trainer(alone, own, options).fit();
    CHECK(relative_error(together->base()[problem].detach(), alone->base().detach()) < 1e-3);
  }
}

TEST_CASE("fits of cubes by POGM and ADMM go on from their checkpoints bit for bit", "[solvers][quick]") {
  const auto optimizer = GENERATE(OptimizerKind::pogm, OptimizerKind::admm);
  const TemporaryFolder folder;
  const auto options = [&](std::int64_t epochs) {
    return TrainOptions().optimizer(optimizer).tolerance(1e-12).epochs(epochs).checkpoint(folder / "c").resume(true);
  };
  auto whole_model = positive_model(cube(torch::kFloat32, 4));
  auto whole_options = options(60).resume(false);
  whole_options.checkpoint({});
  const auto whole = Trainer(whole_model, joined(Joined::all), whole_options).fit();
  TrainResult last;
  GriddedNet model{nullptr};
  for (const std::int64_t epochs : {1, 33, 60}) {
    model = positive_model(cube(torch::kFloat32, 4));
    last = Trainer(model, joined(Joined::all), options(epochs)).fit();
  }
  CHECK(last.resumed_from == 33);
  CHECK(same(model->base(), whole_model->base()));
  CHECK(same_history(last.history, whole.history));
}
