#include "catch.h"

#include <cmath>
#include <numbers>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/simulation/thermal_noise.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/uncertainty/harmonic_fill.h>
#include <mpol_cpp/uncertainty/structure_test.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Visibilities of a sky, sum I exp(-2 pi i (u l + v m)) times the area of a pixel, with noise of their weights.
Visibilities observed(const Tensor& sky, const GridCoords& coords, double sigma, std::uint64_t seed) {
  const auto like = random_visibilities(coords, 1, seed);
  const auto u = like.baselines().u().reshape({-1, 1}), v = like.baselines().v().reshape({-1, 1});
  const auto l = coords.sky_x().reshape({1, -1}) * units::arcsec, m = coords.sky_y().reshape({1, -1}) * units::arcsec;
  const auto phase = -2 * std::numbers::pi * (u * l + v * m);
  const auto flux = sky.reshape({1, -1}) * coords.cell_area();
  const auto clean = at::complex((flux * phase.cos()).sum(1), (flux * phase.sin()).sum(1));
  const auto noise = sigma * standard_complex_noise(clean.numel(), seed + 1);
  return {like.baselines(), (clean + noise).view({1, -1}), at::full({1, clean.numel()}, 1 / (sigma * sigma), torch::kFloat64)};
}

Tensor gaussian(const GridCoords& coords, double east, double north, double sigma) {
  return (-((coords.sky_x() - east).square() + (coords.sky_y() - north).square()) / (2 * sigma * sigma)).exp();
}

Tensor circle(const GridCoords& coords, double east, double north, double radius) {
  return ((coords.sky_x() - east).square() + (coords.sky_y() - north).square()) <= radius * radius;
}

struct Fitted {
  GriddedNet model;
  Objective objective;
};

Fitted fitted(const GridCoords& coords, const Visibilities& visibilities, std::vector<Term> terms, Smoothing smoothing,
              torch::Dtype dtype, double tolerance) {
  const auto npix = coords.npix();
  auto likelihood = ExactLikelihood(coords, visibilities, ChannelMap::cube(1));
  if (dtype == torch::kFloat32) likelihood->to(dtype);
  Objective objective(likelihood, std::move(terms));
  GriddedNet model(GriddedNetOptions(coords)
                       .base_cube(at::full({1, npix, npix}, 0.5, dtype))
                       .dtype(dtype)
                       .pixel_mapping(nonnegative_mapping()),
                   smoothing);
  Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(tolerance).epochs(20000)).fit();
  return {model, objective};
}

const GridCoords structure_grid(0.1, 32);

/// A broad disc with a clump, and a gap, on it.
Tensor clumpy_sky(double clump, double gap) {
  return gaussian(structure_grid, 0, 0, 0.6) + clump * gaussian(structure_grid, 0.7, 0.5, 0.12) -
         gap * gaussian(structure_grid, -0.2, -0.1, 0.15);
}

double total_of(const Fitted& fit, const Tensor& base) {
  const torch::NoGradGuard no_grad;
  const auto kept = fit.model->base().detach().clone();
  fit.model->base().copy_(base.view(kept.sizes()));
  const double total = fit.objective.evaluate(fit.model).total.item<double>() * fit.objective.normalizer();
  fit.model->base().copy_(kept);
  return total;
}

}  // namespace

TEST_CASE("the bound holds for any log-concave posterior, is attained, and is below Pereyra's", "[uncertainty][quick]") {
  const auto pereyra = [](double unknowns, double level) {
    return unknowns + std::sqrt(16 * unknowns * std::log(3 / (1 - level)));
  };
  for (const double level : {0.68, 0.95, 0.99, 0.9999}) {
    CHECK(highest_density_bound(1, level) == Approx(std::log(1 / (1 - level))));
    for (const double unknowns : {1.0, 2.0, 18.0, 1000.0, 16384.0, 1e7}) {
      const double bound = highest_density_bound(unknowns, level);
      CHECK(bound > unknowns - 1);  // the mean of a Gamma distribution, less than its largest distance from the median
      CHECK(bound < pereyra(unknowns, level));
    }
  }
  // Its normal approximation, where there are many.
  CHECK(highest_density_bound(1e6, 0.99) == Approx(1e6 + 2.3263479 * 1e3).epsilon(1e-5));
  // Drawn: exp(-|x|) of three numbers has F - F* of the Gamma distribution itself, a Gaussian half of chi^2 of three.
  torch::manual_seed(3);
  const auto draws = torch::randn({400000, 6}, torch::kFloat64);
  const auto exponential = -torch::rand({400000, 3}, torch::kFloat64).log().sum(1);  // |x| of a density exp(-|x|) in three
  const auto gaussian = draws.slice(1, 0, 3).square().sum(1) / 2;
  const double bound = highest_density_bound(3, 0.95);
  CHECK((exponential <= bound).to(torch::kFloat64).mean().item<double>() == Approx(0.95).margin(2e-3));
  CHECK((gaussian <= bound).to(torch::kFloat64).mean().item<double>() > 0.98);
  CHECK_THROWS_AS(highest_density_bound(100, 1), ValueError);
  CHECK_THROWS_AS(highest_density_bound(100, 0), ValueError);
  CHECK_THROWS_AS(highest_density_bound(0, 0.9), ValueError);
}

TEMPLATE_TEST_CASE("a bright clump and a deep gap are real, a spot of noise is not", "[uncertainty]", float, double) {
  const auto fit = fitted(structure_grid, observed(clumpy_sky(1, 0.6), structure_grid, 0.02, 21),
                          {terms::sparsity(5e-3), terms::tv_image(5e-3)}, Smoothing::hann, dtype_of<TestType>(), 1e-5);
  const StructureTest test(fit.model.ptr(), fit.objective);
  const auto before = fit.model->base().detach().clone();
  const auto clump = test.judge(circle(structure_grid, 0.7, 0.5, 0.35));
  CHECK(clump.is_real());
  CHECK(clump.sigma() > std::sqrt(2 * clump.bound));
  CHECK(clump.flux.at(0) > 0);
  const auto gap = test.judge(circle(structure_grid, -0.2, -0.1, 0.4));
  CHECK(gap.is_real());
  CHECK(gap.flux.at(0) < 0);
  // The brightest pixel far from everything.
  const auto far = at::where(gaussian(structure_grid, 0, 0, 1) < 0.2, clump.image[0], at::zeros_like(clump.image[0]));
  const auto spot = far.argmax().template item<std::int64_t>();
  const auto of_spot = [&](const Tensor& axis) { return axis.reshape({-1})[spot].template item<double>(); };
  REQUIRE(far.max().template item<double>() > 0);
  const auto noise = test.judge(circle(structure_grid, of_spot(structure_grid.sky_x()), of_spot(structure_grid.sky_y()), 0.3));
  CHECK_FALSE(noise.is_real());
  CHECK(noise.sigma() < 4);
  // Shared by as many places as such regions have room.
  CHECK(noise.places == Approx(32.0 * 32.0 / static_cast<double>(noise.pixels)));
  CHECK(noise.bound == Approx(std::log(100 * noise.places)));
  CHECK(at::equal(fit.model->base(), before));
}

TEMPLATE_TEST_CASE("F of the filled image is that of the objective, flux is kept account of, nothing else is touched",
                   "[uncertainty][quick]", float, double) {
  const auto fit = fitted(structure_grid, observed(clumpy_sky(1, 0), structure_grid, 0.05, 22),
                          {terms::sparsity(5e-3), terms::tv_image(5e-3)}, Smoothing::hann, dtype_of<TestType>(), 1e-5);
  const auto region = circle(structure_grid, 0.7, 0.5, 0.35);
  const auto found = StructureTest(fit.model.ptr(), fit.objective).judge(region);
  const auto base = fit.model->base().detach();
  const auto filled = harmonic_fill(base, region);
  CHECK(found.pixels == region.sum().template item<std::int64_t>());
  CHECK(found.f_image == Approx(total_of(fit, base)).epsilon(1e-4));
  CHECK(found.filled_excess == Approx(total_of(fit, filled) - total_of(fit, base)).epsilon(tolerance<TestType>(2e-3, 1e-2)));
  CHECK(found.least_excess > 0);
  CHECK(found.least_excess <= found.filled_excess);
  CHECK(found.flux.at(0) == Approx((found.image - found.filled).sum().template item<double>() * structure_grid.cell_area()));
  CHECK(found.flux.at(0) == Approx((base - filled).sum().template item<double>() * structure_grid.cell_area()).epsilon(1e-3));
  const auto beyond = circle(structure_grid, 0.7, 0.5, 0.35 + 0.2).logical_not();  // as far as the convolution reaches
  CHECK(relative_error(found.filled[0].masked_select(beyond), found.image[0].masked_select(beyond)) < 1e-6);

  const auto noisier = StructureTest(fit.model.ptr(), fit.objective, StructureTestOptions().noise_factor(2)).judge(region);
  CHECK(noisier.filled_excess == Approx(found.filled_excess / 4).epsilon(1e-2));
  CHECK(noisier.bound == found.bound);
}

TEST_CASE("the least cost of a contrast is that of a Gaussian posterior where it is one", "[uncertainty][quick]") {
  const GridCoords coords(0.1, 10);
  const auto sky = at::full({10, 10}, 5, torch::kFloat64) + 2 * gaussian(coords, 0.1, 0, 0.15);  // far from zero
  const auto fit = fitted(coords, observed(sky, coords, 0.05, 23), {terms::tsv(1e-4)}, Smoothing::none, torch::kFloat64, 1e-10);
  const auto region = circle(coords, 0.1, 0, 0.22);
  const auto found = StructureTest(fit.model.ptr(), fit.objective, StructureTestOptions().most_fits(20)).judge(region);
  REQUIRE(found.least.min().item<double>() > 0);
  // F is quadratic: columns of its second derivative H are differences of slopes.
  const auto slope_at = [&](const Tensor& image) {
    const auto leaf = image.clone().view({1, 10, 10}).set_requires_grad(true);
    fit.objective.evaluate(ModelOutput(coords, leaf, leaf)).total.sum().backward();
    return leaf.grad().flatten() * fit.objective.normalizer();
  };
  const auto base = fit.model->base().detach();
  const auto constant = slope_at(at::zeros_like(base));
  const auto unit = at::eye(100, torch::kFloat64);
  auto second = at::zeros({100, 100}, torch::kFloat64);
  for (std::int64_t i = 0; i < 100; ++i) second[i].copy_(slope_at(unit[i]) - constant);
  const auto taken = (base - harmonic_fill(base, region)).flatten();
  const auto window = smooth_window(region).flatten(), along = window / window.dot(taken);
  const double expected = 0.5 / along.dot(at::linalg_solve(second, along)).item<double>();
  CHECK(found.least_excess == Approx(expected).epsilon(0.01));
  CHECK(found.filled_excess == Approx(0.5 * taken.dot(second.matmul(taken)).item<double>()).epsilon(1e-3));
  CHECK(found.least_excess < 0.9 * found.filled_excess);
  const auto left = found.least[0].flatten() - (base - taken.view({1, 10, 10})).flatten();
  CHECK(std::abs(left.dot(along).item<double>()) < 0.05);
}

TEST_CASE("structures that cannot be judged are refused", "[uncertainty][quick]") {
  const auto fit = fitted(structure_grid, observed(clumpy_sky(1, 0), structure_grid, 0.05, 24), {terms::sparsity(1e-4)},
                          Smoothing::hann, torch::kFloat64, 1e-2);
  const StructureTest test(fit.model.ptr(), fit.objective);
  CHECK_THROWS_AS(test.judge(at::zeros({32, 32})), ValueError);
  CHECK_THROWS_AS(test.judge(at::full({32, 32}, 1.0)), ValueError);
  CHECK_THROWS_AS(test.judge(at::zeros({16, 16})), ShapeError);
  CHECK_THROWS_AS(test.judge(at::zeros({2, 32, 32})), ShapeError);
  const auto with = [&](const StructureTestOptions& options) { StructureTest(fit.model.ptr(), fit.objective, options); };
  CHECK_THROWS_AS(with(StructureTestOptions().level(1)), ValueError);
  CHECK_THROWS_AS(with(StructureTestOptions().noise_factor(0)), ValueError);
  CHECK_THROWS_AS(with(StructureTestOptions().most_fits(0)), ValueError);
  CHECK_THROWS_AS(with(StructureTestOptions().most_iterations(3)), ValueError);
  CHECK_THROWS_WITH(StructureTest(GriddedNet(GriddedNetOptions(structure_grid)).ptr(), fit.objective),
                    ContainsSubstring("cannot be judged"));
}
