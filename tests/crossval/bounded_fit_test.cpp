// The simplest image within a bound of chi^2.
#include "catch.h"

#include <cmath>
#include <memory>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/crossval/bounded_fit.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/proximal/sets.h>
#include <mpol_cpp/proximal/wavelet_dictionary.h>
#include <mpol_cpp/solvers/ball_constrained.h>
#include <mpol_cpp/solvers/convex_objective.h>

#include "compare.h"
#include "random.h"
#include "small_grid.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A broad source of 1 Jy and noise as the weights say, `noise` times.
Visibilities bounded_observation(double noise = 1) {
  const auto random = random_visibilities(small_grid, 1, 11);
  const auto& uv = random.baselines();
  const auto [u, v] = uv.channel(0);
  const auto envelope = at::exp((u.square() + v.square()) * (-2 / std::pow(uv.max_abs_u(), 2))).unsqueeze(0);
  const auto weights = random.weights() * 40;
  const auto sigma = std::sqrt(2.0) / weights.sqrt();
  return {
      uv,
      torch::complex(envelope, at::zeros_like(envelope)) + noise * normal(envelope.sizes(), torch::kComplexDouble, 61) * sigma,
      weights};
}

std::shared_ptr<Likelihood> exact_of(const Visibilities& visibilities) {
  return ExactLikelihood(small_grid, visibilities, ChannelMap::cube(1)).ptr();
}

GriddedNet positive_pixels(Smoothing smoothing, torch::Dtype dtype = torch::kFloat64) {
  const auto base = at::full({1, 16, 16}, 1.0, dtype);
  return GriddedNet(GriddedNetOptions(small_grid).base_cube(base).dtype(dtype).pixel_mapping(nonnegative_mapping()), smoothing);
}

double chi_squared_of(Likelihood& likelihood, GriddedNet& model) {
  const torch::NoGradGuard no_grad;
  return likelihood.chi_squared(model->make_sky()).sum().item<double>();
}

double simplicity_of(const std::vector<Term>& terms, GriddedNet& model) {
  const torch::NoGradGuard no_grad;
  double sum = 0;
  const auto sky = model->make_sky();
  for (const auto& term : terms) sum += term.weights()[0] * term.evaluate(ModelOutput(small_grid, {}, sky)).item<double>();
  return sum;
}

BoundedFitOptions precisely() {
  auto train = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-7).epochs(30000);
  return BoundedFitOptions().tolerance(1e-5).train(train);
}

}  // namespace

TEST_CASE("the bound of chi^2 is its mean and two standard deviations", "[crossval][bound][quick]") {
  CHECK(chi_squared_bound(800) == Approx(1600 + 2 * std::sqrt(3200.0)));
  CHECK(std::sqrt(chi_squared_bound(800)) == Approx(noise_radius(1600)));
  CHECK_THROWS_AS(chi_squared_bound(0), ValueError);
}

TEMPLATE_TEST_CASE("a bounded fit meets its bound, and Karush, Kuhn and Tucker's conditions hold", "[crossval][bound]", float,
                   double) {
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  const auto observation = bounded_observation();
  const auto likelihood = exact_of(observation);
  const std::vector<Term> terms = {terms::sparsity(1e-3), terms::tv_image(2e-3)};
  const double bound = chi_squared_bound(observation.nvis()) * (smoothing == Smoothing::hann ? 1.2 : 1);  // Hann's least is 1.06
  auto model = positive_pixels(smoothing, dtype_of<TestType>());
  std::vector<BoundedFitPoint> seen;
  auto options = BoundedFitOptions().on_fit([&](const BoundedFitPoint& point) { seen.push_back(point); });
  const auto found = fit_within(model, ExactLikelihood(small_grid, observation, ChannelMap::cube(1)), terms, bound, options);
  CHECK(found.is_met);
  CHECK(found.bound == bound);
  CHECK(seen.size() == found.points.size());
  CHECK(std::abs(chi_squared_of(*likelihood, model) / bound - 1) < 1e-3);  // the constraint, of the image itself
  CHECK(found.chi_squared == Approx(chi_squared_of(*likelihood, model)).epsilon(1e-4));
  // Stationary: the image is that of the Lagrangian at the multiplier, which is above 0; complementary: the bound is met.
  CHECK(found.factor > 0);
  std::vector<Term> weighed;
  for (const auto& term : terms) weighed.push_back(term.with_weights({term.weights()[0] * found.factor}));
  ConvexObjective function(model.ptr(), Objective(likelihood, weighed));
  const auto z = function.images().clone();
  auto slope = at::empty_like(z), next = at::empty_like(z);
  function.evaluate(z, slope);
  const double step = 1 / function.curvatures()[0];
  function.proximal(z - slope * step, {step}, {3000}, next);
  CHECK(relative_error(next, z) < 2e-3);
  CHECK(z.min().item<double>() >= 0);
}

TEST_CASE("no image within the bound is simpler", "[crossval][bound]") {
  const auto observation = bounded_observation();
  const auto likelihood = exact_of(observation);
  const std::vector<Term> terms = {terms::sparsity(1e-3), terms::tv_image(1e-3)};
  const double bound = chi_squared_bound(observation.nvis());
  auto model = positive_pixels(Smoothing::none);
  const auto found = fit_within(model.ptr(), likelihood, terms, bound, precisely());
  REQUIRE(found.is_met);
  const double least = simplicity_of(terms, model);
  const auto base = model->base().detach().clone();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto other = uniform(base.sizes(), torch::kFloat64, seed) * base.max();
    for (const double part : {1e-4, 1e-3, 1e-2, 0.1}) {
      auto moved = positive_pixels(Smoothing::none);
      {
        const torch::NoGradGuard no_grad;
        moved->base().copy_(base + part * (other - base));
      }
      if (chi_squared_of(*likelihood, moved) <= bound) CHECK(simplicity_of(terms, moved) >= least * (1 - 1e-5));
    }
  }
  // What a stronger factor gives is simpler, and out of bounds.
  auto stronger = positive_pixels(Smoothing::none);
  const auto further = fit_within(stronger.ptr(), likelihood, terms, 1.2 * bound, precisely());
  CHECK(further.factor > found.factor);
  CHECK(simplicity_of(terms, stronger) < least);
}

TEST_CASE("a bounded fit ends where the primal-dual method in a ball does", "[crossval][bound]") {
  const auto observation = bounded_observation();
  const double bound = chi_squared_bound(observation.nvis());
  const double weight = 1e-3;
  auto model = positive_pixels(Smoothing::none);
  const std::vector<Term> terms = {terms::wavelets(weight)};
  const auto found = fit_within(model.ptr(), exact_of(observation), terms, bound);
  REQUIRE(found.is_met);

  const Nufft nufft(small_grid, observation.baselines(), 1);
  const auto roots = observation.weights().sqrt().view({1, -1});
  const auto pairs = [](const Tensor& complex) { return at::view_as_real(complex); };  // (1, 1, nvis, 2)
  BallConstrained problem;
  problem.measurement = std::make_shared<LinearFunctions>(
      [&](const Tensor& x) { return pairs(nufft->forward(x) * roots); },
      [&](const Tensor& y) { return nufft->adjoint(at::view_as_complex(y.contiguous()) * roots); });
  problem.data = pairs((observation.data() * roots).unsqueeze(0));
  problem.radii = at::full({1}, std::sqrt(bound), torch::kFloat64);
  problem.analysis = std::make_shared<SaraDictionary>(SaraOptions{8, 4});
  problem.simplicity = std::make_shared<L1Norm>();
  problem.allowed = std::make_shared<NonNegative>();
  PrimalDualOptions options;
  options.tolerance = 1e-6;
  options.most_iterations = 2500;
  const auto solver = ball_constrained(problem, at::zeros({1, 1, 16, 16}, torch::kFloat64), options);
  solver->solve();
  const auto x = solver->solution();
  CHECK(problem_norms(problem.measurement->apply(x) - problem.data).item<double>() == Approx(std::sqrt(bound)).epsilon(1e-3));
  const double own = simplicity_of(terms, model) / weight;
  CHECK(problem.simplicity->value(problem.analysis->apply(x)).item<double>() == Approx(own).epsilon(2e-3));
  CHECK(relative_error(x.view({1, 16, 16}), model->base().detach()) < 3e-2);
}

TEST_CASE("bounds that no image comes to, or every image, are refused in words", "[crossval][bound][quick]") {
  const std::vector<Term> terms = {terms::sparsity(1e-3)};
  auto model = positive_pixels(Smoothing::none);
  const auto noisy = bounded_observation(3);
  const double bound = chi_squared_bound(noisy.nvis());
  CHECK_THROWS_WITH(fit_within(model.ptr(), exact_of(noisy), terms, 0.3 * bound),
                    ContainsSubstring("no image comes to the bound") && ContainsSubstring("mpol weights"));
  CHECK_THROWS_WITH(fit_within(model.ptr(), exact_of(noisy), terms, 1e9), ContainsSubstring("without any light"));
  const auto likelihood = exact_of(noisy);
  for (const double bad : {0.0, -1.0, std::nan("")}) CHECK_THROWS_AS(fit_within(model.ptr(), likelihood, terms, bad), ValueError);
  CHECK_THROWS_AS(fit_within(model.ptr(), likelihood, {}, bound), ValueError);
  CHECK_THROWS_AS(fit_within(model.ptr(), likelihood, {terms::sparsity(0)}, bound), ValueError);
  CHECK_THROWS_AS(fit_within(model.ptr(), likelihood, {terms::entropy(1e-3)}, bound), ValueError);
  CHECK_THROWS_AS(fit_within(model.ptr(), likelihood, terms, bound, BoundedFitOptions().tolerance(0)), ValueError);
  CHECK_THROWS_AS(fit_within(model.ptr(), likelihood, terms, bound, BoundedFitOptions().most_fits(0)), ValueError);
  const auto by_adam = TrainOptions().tolerance(1e-3);
  CHECK_THROWS_AS(fit_within(model.ptr(), likelihood, terms, bound, BoundedFitOptions().train(by_adam)), ValueError);
  const auto stopped = BoundedFitOptions().train(TrainOptions().optimizer(OptimizerKind::pogm).interrupted([] { return true; }));
  CHECK(fit_within(model.ptr(), likelihood, terms, bound, stopped).interrupted);
  const auto short_of_fits =
      fit_within(model.ptr(), exact_of(bounded_observation()), terms, bound, BoundedFitOptions().most_fits(1));
  CHECK(short_of_fits.points.size() == 1);
}
