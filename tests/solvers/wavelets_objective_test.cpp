// Sparsity in SARA's bases: its proximal map, joined with others, and the optimum that every solver finds.
#include "catch.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/wavelet/sara_bases.h>
#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/proximal/sets.h>
#include <mpol_cpp/proximal/wavelet_dictionary.h>
#include <mpol_cpp/regularizers/group_sparsity.h>
#include <mpol_cpp/regularizers/tv_channel.h>
#include <mpol_cpp/regularizers/tv_image.h>
#include <mpol_cpp/regularizers/tv_slope.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/cube_proximal.h>
#include <mpol_cpp/solvers/primal_dual.h>
#include <mpol_cpp/train/trainer.h>

#include "../compare.h"
#include "../temporary_folder.h"
#include "convex_problems.h"
#include "proximal_images.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using Weights = CubeProximal::Weights;

double norm_in_bases(const Tensor& sky) { return ops::SaraBases(sky.size(-1)).analyze(sky).abs().sum().item<double>(); }

/// A source of 1 Jy on noise, in one channel.
Visibilities one_source() {
  const auto noise = random_visibilities(small_grid, 1, 7);
  return {noise.baselines(), noise.data() * 0.3 + 1, noise.weights()};
}

constexpr double lambda_of_wavelets = 2e-4;

Objective sara(std::vector<Term> more = {}) {
  more.push_back(terms::wavelets(lambda_of_wavelets));
  return Objective(ExactLikelihood(small_grid, one_source(), ChannelMap::cube(1)).ptr(), std::move(more));
}

GriddedNet model_from(double value, Smoothing smoothing, torch::Dtype dtype = torch::kFloat64) {
  return positive_model(at::full({1, 24, 24}, value, dtype), smoothing);
}

TrainResult sara_fit(GriddedNet& model, const Objective& objective, OptimizerKind optimizer, double tolerance) {
  return Trainer(model, objective, TrainOptions().optimizer(optimizer).tolerance(tolerance).epochs(2000)).fit();
}

}  // namespace

TEST_CASE("the map of wavelets, alone or with others, ends at the minimum: the duality gap closes", "[solvers][wavelets]") {
  const auto hann = GENERATE(false, true);
  const auto q = noisy_middle({1, 3, 16, 16}, torch::kFloat64, 1, 2, 2);
  const Numbers steps = {0.5, 0.7, 0.6};
  const auto step = at::tensor(steps, torch::kFloat64).view({1, 3, 1, 1});
  for (const auto& weights : {Weights{{0}, {0}, {0}, {}, {0.3}}, Weights{{0.3}, {0}, {0}, {}, {0.2}},
                              Weights{{0.2}, {0.3}, {0.4}, {}, {0.1}}, Weights{{0}, {0}, {0}, {0.2}, {0.1}}}) {
    CAPTURE(hann, weights.variation[0], weights.channels[0], weights.bases[0]);
    CubeProximal map(q, hann, {}, weights);
    const auto gap = [&](const Tensor& x) {
      const auto sky = hann ? ops::hann(x) : x;
      constexpr double epsilon = 1e-24;
      const double simple =
          (weights.variation[0] * losses::tv_image(sky, epsilon) + weights.channels[0] * losses::tv_channel(sky, epsilon) +
           weights.spectra[0] * losses::group_sparsity(sky, epsilon))
              .item<double>() +
          weights.bases[0] * norm_in_bases(sky) +
          (weights.has_curvature() ? weights.curvature[0] * losses::tv_slope(sky, epsilon).item<double>() : 0);
      const auto positive = (q - step * map.slope()).clamp_min(0);
      const double primal = ((x - q).square() / step).sum().item<double>() / 2 + simple;
      const double dual = ((q.square() - positive.square()) / step).sum().item<double>() / 2;
      return (primal - dual) / (q.square() / step).sum().item<double>();
    };
    const double early = gap(applied(map, q, steps, {2}));
    const auto x = applied(map, q, steps, {600});
    CHECK(x.min().item<double>() >= 0);
    const auto dual = map.dual();
    CHECK(dual.narrow(0, dual.size(0) - 8, 8).abs().max().item<double>() <= 1);  // feasible, whence the gap is one
    const double own = gap(x);
    CHECK(own >= -1e-12);
    CHECK(own < 1e-4);
    CHECK(own < 0.1 * early);
  }
}

TEMPLATE_TEST_CASE("problems whose wavelets weigh differently have the map that each has alone, and duals go on",
                   "[solvers][wavelets][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto q = noisy_middle({2, 1, 16, 16}, dtype, 1, 2, 1);
  const Weights both{{0.1, 0}, {0, 0}, {0, 0}, {}, {0, 0.3}};
  CubeProximal map(q, true, {}, both), second(q, true, {}, both);
  const auto x = applied(map, q, {1, 0.8}, {30, 20});
  for (const std::size_t i : {0, 1}) {
    const auto at = static_cast<std::int64_t>(i);
    CubeProximal alone(q.narrow(0, at, 1).contiguous(), true, {}, {{both.variation[i]}, {0}, {0}, {}, {both.bases[i]}},
                       CubeProximal::By::tensors);
    const auto own = applied(alone, q.narrow(0, at, 1).contiguous(), {i == 0 ? 1 : 0.8}, {i == 0 ? 30 : 20});
    CHECK(relative_error(x.narrow(0, at, 1), own) < tolerance<TestType>(1e-12, 2e-5));
  }
  second.set_dual(map.dual());
  CHECK(same(applied(map, q, {1, 0.8}, {3, 4}), applied(second, q, {1, 0.8}, {3, 4})));
  CHECK_THROWS_AS(second.set_dual(at::zeros({2, 2, 1, 16, 16}, dtype)), FileError);
}

TEMPLATE_TEST_CASE("an objective with wavelets has the losses of its terms and the gradient of its smooth part",
                   "[solvers][wavelets][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  auto model = positive_model(base_image(dtype, 4).narrow(0, 0, 1).contiguous(), smoothing);
  const auto objective = sara({terms::sparsity(1e-3), terms::tv_image(5e-4)});
  ConvexObjective function(model.ptr(), objective);
  auto gradient = at::full_like(function.images(), 7);
  const auto simple = function.evaluate(function.images(), gradient);
  const auto value = objective.evaluate(*model);
  const auto table = value.table().to(torch::kCPU, torch::kFloat64);  // total, nll, sparsity, tv, wavelets
  CHECK(relative_error(at::tensor(function.losses(), torch::kFloat64), table.flatten()) < tolerance<TestType>(1e-12, 1e-5));
  const auto sky = model->make_sky().detach().to(torch::kFloat64);
  const double in_bases = lambda_of_wavelets * norm_in_bases(sky) / 3;
  CHECK(simple[0] == Approx(table[3].template item<double>() + in_bases).epsilon(tolerance<TestType>(1e-12, 1e-5)));
  const auto linear = (value.nll + value.terms[0] * (1 + lambda_of_wavelets / 3 / 1e-3)).sum();  // Dirac's part is sparsity
  linear.backward();
  CHECK(relative_error(gradient, model->base().grad().view_as(gradient)) < tolerance<TestType>(1e-11, 1e-4));
}

TEST_CASE("POGM, FISTA, ADMM and primal-dual steps end at one optimum in SARA's dictionary", "[solvers][wavelets]") {
  const auto objective = sara();
  std::vector<std::pair<double, Tensor>> ends;
  for (const auto optimizer : {OptimizerKind::pogm, OptimizerKind::fista, OptimizerKind::admm}) {
    CAPTURE(to_string(optimizer));
    auto model = model_from(1, Smoothing::none);
    const auto result = sara_fit(model, objective, optimizer, 1e-4);
    CHECK(result.stop_reason == StopReason::converged);
    ends.emplace_back(result.loss.total(), model->base().detach().view({1, 1, 24, 24}).clone());
  }
  // Another solver, and another program text: the dictionary as a linear map, its Dirac among the bases.
  auto model = model_from(1, Smoothing::none);
  const auto data_alone = Objective(objective.shared_likelihood(), {});
  ConvexObjective function(model.ptr(), data_alone);
  PrimalDual solver(std::make_shared<SmoothPart>(function), std::make_shared<NonNegative>(),
                    std::make_shared<SaraDictionary>(SaraOptions{8, 3}), std::make_shared<L1Norm>(lambda_of_wavelets),
                    function.images(), {{.most_iterations = 3000, .tolerance = 0}, 1.4, {0.05 * function.curvatures()[0]}});
  solver.solve();
  const auto sky = solver.solution().clamp_min(0);
  {
    const torch::NoGradGuard no_grad;
    auto at_end = positive_model(sky.view({1, 24, 24}).clone(), Smoothing::none);
    ends.emplace_back(objective.evaluate(*at_end).total.item<double>(), sky);
  }
  const double least = ends.front().first;
  auto at_start = positive_model(ends.front().second.view({1, 24, 24}).clone(), Smoothing::none);
  const double regularizers = least - objective.evaluate(*at_start).nll.item<double>();
  for (const auto& [total, image] : ends) {
    CHECK(total == Approx(least).margin(3e-3 * regularizers));
    CHECK(relative_error(image, ends.front().second) < 0.1);
  }
}

TEST_CASE("at the optimum in SARA's dictionary no subgradient points anywhere, and its gap is certified", "[solvers][wavelets]") {
  const auto smoothing = GENERATE(Smoothing::none, Smoothing::hann);
  const auto objective = sara({terms::tv_image(1e-4)});
  auto early_model = model_from(1, smoothing), model = model_from(1, smoothing);
  const auto early =
      Trainer(early_model, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-12).epochs(6)).fit();
  const auto end = sara_fit(model, objective, OptimizerKind::pogm, 1e-5);
  ConvexObjective function(model.ptr(), objective);
  const auto z = function.images().clone();
  auto slope = at::empty_like(z), next = at::empty_like(z);
  function.evaluate(z, slope);
  const double step = 1 / function.curvatures()[0];
  function.proximal(z - slope * step, {step}, {2000}, next);
  CHECK(relative_error(next, z) < 1e-4);  // an optimum is a fixed point of the proximal step
  // Its dual is feasible and, where a coefficient is not 0, is its sign: a subgradient of the norm. What is left of the slope
  // is 0 where pixels shine (weighed by how they do: those that leave 0 last are near it) and not negative where they do not.
  const auto dual = function.map().dual();
  const auto in_bases = dual.narrow(0, 2, 8);
  CHECK(in_bases.abs().max().item<double>() <= 1);
  const auto sky = smoothing == Smoothing::hann ? ops::hann(z) : z;
  const auto coefficients = ops::SaraBases(24).analyze(sky);
  const auto missed = (coefficients.abs() - coefficients * in_bases).sum().item<double>();
  CHECK(missed < 1e-3 * coefficients.abs().sum().item<double>());
  const auto whole = slope + function.map().slope();
  CHECK((z * whole).abs().sum().item<double>() < 1e-2 * lambda_of_wavelets * z.sum().item<double>());
  CHECK(whole.min().item<double>() > -3e-2 * lambda_of_wavelets);
  CHECK((z == 0).sum().item<std::int64_t>() > 20);
  const double regularizers = end.loss.total() - end.loss.nll();
  REQUIRE(early.gap);
  REQUIRE(end.gap);
  CHECK(*early.gap >= early.loss.total() - end.loss.total());
  CHECK(*end.gap >= -1e-10);
  CHECK(*end.gap < 3e-2 * regularizers);
}

TEMPLATE_TEST_CASE("the optimum in SARA's dictionary is the same from any start and in any dtype, and Adam comes near it",
                   "[solvers][wavelets]", float, double) {
  const auto objective = sara({terms::sparsity(1e-4)});
  auto reference = model_from(1, Smoothing::hann);
  const auto best = sara_fit(reference, objective, OptimizerKind::pogm, 1e-7);
  for (const double start : {0.0, 5.0}) {
    auto model = model_from(start, Smoothing::hann, dtype_of<TestType>());
    const auto end = sara_fit(model, objective, OptimizerKind::pogm, 1e-5);
    CHECK(end.stop_reason == StopReason::converged);
    CHECK(relative_error(model->make_sky().detach().to(torch::kFloat64), reference->make_sky().detach()) < 5e-3);
  }
  GriddedNet softplus(GriddedNetOptions(small_grid).start(0).dtype(dtype_of<TestType>()));
  const auto adam = Trainer(softplus, objective, TrainOptions().epochs(3000)).fit();
  const double regularizers = best.loss.total() - best.loss.nll();
  CHECK(adam.step == StepKind::eager);  // the fused step has no wavelets, and says so
  CHECK(adam.step_reason.find("wavelets") != std::string::npos);
  CHECK(adam.loss.total() >= best.loss.total() - 1e-5 * regularizers);
  CHECK(adam.loss.total() < best.loss.total() + 0.1 * regularizers);
  CHECK_THROWS_AS(Trainer(softplus, objective, TrainOptions().step(StepKind::fused).epochs(2)).fit(), ValueError);
}

TEST_CASE("fits with wavelets go on from their checkpoints bit for bit", "[solvers][wavelets]") {
  const auto optimizer = GENERATE(OptimizerKind::pogm, OptimizerKind::admm);
  const TemporaryFolder folder;
  const auto options = [&](std::int64_t epochs) { return TrainOptions().optimizer(optimizer).tolerance(1e-12).epochs(epochs); };
  auto whole = model_from(1, Smoothing::hann, torch::kFloat32), parts = model_from(1, Smoothing::hann, torch::kFloat32);
  const auto once = Trainer(whole, sara(), options(40)).fit();
  for (const std::int64_t epochs : {17, 40}) {
    parts = model_from(1, Smoothing::hann, torch::kFloat32);
    Trainer(parts, sara(), options(epochs).checkpoint(folder / "c").resume(true)).fit();
  }
  CHECK(same(parts->base(), whole->base()));
}
