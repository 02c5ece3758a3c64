// Pixels of either sign: their proximal map, and where fits of them end.
#include "catch.h"

#include <cmath>
#include <string>
#include <vector>

#include <ATen/ops/softshrink.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/regularizers/group_sparsity.h>
#include <mpol_cpp/regularizers/tv_channel.h>
#include <mpol_cpp/regularizers/tv_image.h>
#include <mpol_cpp/regularizers/tv_slope.h>
#include <mpol_cpp/solvers/cube_proximal.h>
#include <mpol_cpp/solvers/device/device_pogm.h>
#include <mpol_cpp/train/trainer.h>

#include "convex_problems.h"
#include "forced_isa.h"
#include "instruction_sets.h"
#include "proximal_images.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using Weights = CubeProximal::Weights;

/// Weights of total variation, channels, spectra and slopes of two problems, and of magnitudes.
Weights with_magnitudes(Weights weights, Numbers magnitudes) {
  weights.magnitude = std::move(magnitudes);
  return weights;
}

const std::vector<Weights> weights_of_maps = {
    with_magnitudes({{0, 0}, {0, 0}, {0, 0}}, {0.3, 0.8}),
    with_magnitudes({{0.3, 0}, {0, 0}, {0, 0}}, {0.2, 0.5}),
    with_magnitudes({{0.3, 0.1}, {0, 0}, {0, 0}, {0.2, 0.3}}, {0, 0.4}),
    with_magnitudes({{0.3, 0.1}, {0.4, 0.2}, {0.2, 0.5}, {0.1, 0}}, {0.1, 0.3}),
};

/// A source of 1 Jy, one of -1 Jy 0.3" away, and noise: no flux in all.
Visibilities opposite_sources() {
  const auto noise = random_visibilities(small_grid, channels, 7);
  const auto phase = 2 * M_PI * noise.baselines().u() * 0.15 * M_PI / 648000;
  const auto wave = at::complex(at::zeros_like(phase), -2 * phase.sin());
  return {noise.baselines(), noise.data() * 0.3 + wave.to(noise.data().scalar_type()), noise.weights()};
}

Objective of_opposite_sources(std::vector<Term> terms) {
  return Objective(ExactLikelihood(small_grid, opposite_sources(), ChannelMap::cube(channels)).ptr(), std::move(terms));
}

std::vector<Term> terms_of(const std::string& name) {
  if (name == "sparsity") return {terms::sparsity(2e-3)};
  if (name == "images") return {terms::sparsity(1e-3), terms::tv_image(5e-4), terms::tv_slope(5e-4)};
  return {terms::sparsity(1e-3),       terms::tv_image(5e-4), terms::tv_channel(5e-4),
          terms::group_sparsity(5e-4), terms::tv_slope(3e-4), terms::tsv(1e-5)};
}

GriddedNet signed_model(const Tensor& base, Smoothing smoothing = Smoothing::hann, const Tensor& mask = {}) {
  auto options = GriddedNetOptions(small_grid).base_cube(base).dtype(base.scalar_type());
  return GriddedNet(options.pixel_mapping(either_sign_mapping(mask)), smoothing);
}

Tensor signed_base(torch::Dtype dtype, std::uint64_t seed) { return base_image(dtype, seed) - 1; }

TrainResult fit_signed(GriddedNet& model, const Objective& objective, OptimizerKind optimizer, double tolerance,
                       std::int64_t epochs = 20000) {
  return Trainer(model, objective, TrainOptions().optimizer(optimizer).tolerance(tolerance).epochs(epochs)).fit();
}

}  // namespace

TEST_CASE("alone the magnitudes of pixels shrink them, as their closed form does", "[solvers][quick]") {
  const auto q = normal({2, 3, 9, 9}, torch::kFloat64, 1);
  const auto mask = (uniform({2, 3, 9, 9}, torch::kFloat64, 2) < 0.7).to(torch::kFloat64);
  const auto by = GENERATE(CubeProximal::By::kernels, CubeProximal::By::tensors, CubeProximal::By::gpu_kernels);
  CubeProximal map(q, true, mask, weights_of_maps[0], by);
  const auto x = applied(map, q, Numbers(6, 0.5), {3, 3});
  CHECK(relative_error(x[0], at::softshrink(q[0], 0.15) * mask[0]) < 1e-15);
  CHECK(relative_error(x[1], at::softshrink(q[1], 0.4) * mask[1]) < 1e-15);
}

TEMPLATE_TEST_CASE("the kernels of the map of pixels of either sign equal its tensor operations", "[solvers][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  const auto hann = GENERATE(false, true);
  const auto check = [&](const Weights& weights, std::int64_t n, CubeProximal::By by) {
    const auto q = noisy_middle({2, 3, n, n}, dtype, 5, -2, 2);
    const auto mask = n == 17 ? (uniform({2, 3, n, n}, torch::kFloat64, 2) < 0.8).to(dtype) : Tensor();
    CubeProximal kernels(q, hann, mask, weights, by), tensors(q, hann, mask, weights, CubeProximal::By::tensors);
    const Numbers steps = {0.7, 1, 0.7, 1, 0.7, 1};
    for (const auto& passes : {Passes{1, 4}, Passes{7, 3}}) {  // the second begins where the first ended
      const auto x = applied(kernels, q, steps, passes), reference = applied(tensors, q, steps, passes);
      CHECK(x.min().template item<double>() < 0);
      CHECK(relative_error(x, reference) < tolerance<TestType>(1e-12, 2e-5));
      CHECK(relative_error(kernels.slope(), tensors.slope()) < tolerance<TestType>(1e-11, 1e-3));
    }
  };
  for (const auto& weights : weights_of_maps) {
    for (const std::int64_t n : {2, 17, 40}) {
      CAPTURE(n, hann, weights.variation[0], weights.has_channels(), weights.has_curvature());
      for (const auto isa : instruction_sets()) {
        const ForcedIsa forced(to_string(isa));
        CAPTURE(to_string(isa));
        check(weights, n, CubeProximal::By::kernels);
      }
      check(weights, n, CubeProximal::By::gpu_kernels);
    }
  }
}

TEST_CASE("the map of pixels of either sign ends at the minimum: the duality gap closes", "[solvers][quick]") {
  const auto hann = GENERATE(false, true);
  const auto q = noisy_middle({1, 3, 12, 12}, torch::kFloat64, 1, -2, 2);
  const Numbers steps = {0.5, 0.7, 0.6};
  const auto step = at::tensor(steps, torch::kFloat64).view({1, 3, 1, 1});
  constexpr double magnitude = 0.25;
  for (const auto& own : {Weights{{0.3}, {0}, {0}}, Weights{{0.1}, {0.2}, {0.3}, {0.1}}}) {
    const auto weights = with_magnitudes(own, {magnitude});
    CubeProximal map(q, hann, {}, weights);
    const auto x = applied(map, q, steps, {6000});
    const auto sky = hann ? ops::hann(x) : x;
    auto lengths = weights.variation[0] * losses::tv_image(sky, 1e-24) + weights.channels[0] * losses::tv_channel(sky, 1e-24) +
                   weights.spectra[0] * losses::group_sparsity(sky, 1e-24);
    if (weights.has_curvature()) lengths = lengths + weights.curvature[0] * losses::tv_slope(sky, 1e-24);
    const auto without_lengths = [&](const Tensor& y) {
      return ((y - q).square() / (2 * step) + magnitude * y.abs()).sum().item<double>();
    };
    const double primal = without_lengths(x) + lengths.item<double>();
    // x is cut of q less the slope of the dual images: the least of the Lagrangian there.
    const double dual = without_lengths(x) + (map.slope() * x).sum().item<double>();
    const double size = (q.square() / step).sum().item<double>();
    CHECK((primal - dual) / size > -1e-12);
    CHECK((primal - dual) / size < 1e-7);
    CHECK(x.min().item<double>() < 0);
    CHECK((x == 0).any().item<bool>());
  }
}

TEMPLATE_TEST_CASE("a convex objective of either sign has the objective's losses and the gradient of its smooth part",
                   "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const std::string name = GENERATE("sparsity", "images", "cube");
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  const Objective objective(likelihood_of("exact", dtype), terms_of(name));
  auto model = signed_model(signed_base(dtype, 3), smoothing);
  ConvexObjective function(model.ptr(), objective);
  auto gradient = at::empty_like(function.images()), on_device = at::empty_like(gradient);
  const auto simple = function.evaluate(function.images(), gradient);
  const auto value = objective.evaluate(*model);
  const double bound = tolerance<TestType>(1e-11, 3e-5);
  CHECK(relative_error(at::tensor(function.losses(), torch::kFloat64), value.table().flatten()) < bound);
  // What is left without g is smooth, and has that gradient.
  auto smooth = value.nll;
  for (std::size_t i = 0; i < value.terms.size(); ++i)
    if (objective.terms()[i].name() == "tsv") smooth = smooth + value.terms[i];
  CHECK(simple[0] == Approx((value.total - smooth).template item<double>()).epsilon(bound));
  smooth.backward();
  CHECK(relative_error(gradient.view(model->base().sizes()), model->base().grad()) < tolerance<TestType>(1e-10, 1e-4));
  for (const auto by : {CubeProximal::By::tensors, CubeProximal::By::gpu_kernels}) {
    ConvexObjective other(model.ptr(), objective, by);
    const auto there = other.evaluate_on_device(other.images(), on_device);
    CHECK(relative_error(there.losses.flatten(), at::tensor(function.losses(), torch::kFloat64)) < bound);
    CHECK(there.simple.template item<double>() == Approx(simple[0]).epsilon(bound));
  }
}

TEST_CASE("sparsity of pixels of either sign counts them before they are smoothed", "[solvers][quick]") {
  auto base = at::zeros({channels, 24, 24}, torch::kFloat64);
  base.index({0, 12}).copy_(at::pow(-1, at::arange(24, torch::kFloat64)));  // a row that the Hann convolution all but hides
  auto model = signed_model(base);
  const Objective objective(likelihood_of("exact", torch::kFloat64), {terms::sparsity(2)});
  CHECK(model->make_sky().abs().sum().item<double>() < 2);
  CHECK(objective.evaluate(*model).terms[0].item<double>() == Approx(48));
  CHECK(same(model->signed_pixels(), base));
  CHECK_FALSE(positive_model(base)->signed_pixels().defined());
}

TEST_CASE("fits of sources of opposite signs end at one optimum, whoever makes them, though there is no flux", "[solvers]") {
  const std::string name = GENERATE("images", "cube");
  const auto objective = of_opposite_sources(terms_of(name));
  struct End {
    double total, gap;
    Tensor sky;
  };
  std::vector<End> ends;
  for (const auto optimizer : {OptimizerKind::pogm, OptimizerKind::fista, OptimizerKind::admm, OptimizerKind::pogm}) {
    auto model = signed_model(ends.size() == 3 ? signed_base(torch::kFloat64, 9) : base_image(torch::kFloat64, 9) * 0);
    const auto result = fit_signed(model, objective, optimizer, 1e-7);
    CAPTURE(name, to_string(optimizer), result.epochs);
    CHECK(result.stop_reason == StopReason::converged);
    REQUIRE(result.gap);
    ends.push_back({result.loss.total(), *result.gap, model->make_sky().detach()});
  }
  const auto& first = ends.front();
  CHECK(first.sky.min().item<double>() < 0);
  CHECK(std::abs(first.sky.sum().item<double>()) < 0.1 * first.sky.abs().sum().item<double>());
  auto least = ends.front().total;
  for (const auto& end : ends) least = std::min(least, end.total);
  for (const auto& end : ends) {
    CAPTURE(name, end.total - least, end.gap);
    CHECK(end.total - least < 1e-6 * std::abs(least));
    CHECK(end.gap >= end.total - least);
    CHECK(end.gap < 1e-2 * least);
    CHECK(relative_error(end.sky, first.sky) < 5e-3);
  }
  auto model = signed_model(base_image(torch::kFloat64, 9) * 0);
  const auto adam =
      Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::adam).learning_rate(0.1).epochs(6000)).fit();
  CHECK(adam.loss.total() > least - 1e-9);
  CHECK(adam.loss.total() < 1.002 * least);
}

TEMPLATE_TEST_CASE("POGM of pixels of either sign comes as near to the optimum on a device as on the host", "[solvers][device]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  const std::string name = GENERATE("sparsity", "images", "cube");
  const Objective objective(likelihood_of("exact", dtype), terms_of(name));
  const auto host_model = signed_model(signed_base(dtype, 5)), device_model = signed_model(signed_base(dtype, 5));
  ConvexObjective host(host_model.ptr(), objective), there(device_model.ptr(), objective, CubeProximal::By::gpu_kernels);
  Pogm own(host, host.images());
  DevicePogm device(there, Momentum::optimized);
  device.prepare();
  const double first = device.losses()[0].template item<double>();
  for (int k = 0; k < 100; ++k) {
    own.iterate();
    device.iterate(device.passes());
    device.keep_report();
  }
  const double expected = host.losses()[0];
  CHECK(std::abs(device.losses()[0].template item<double>() - expected) < 1e-4 * (first - expected));
}

TEST_CASE("a mask keeps pixels of either sign dark, and wavelets of them are no convex term that is known", "[solvers][quick]") {
  const auto mask = (uniform({24, 24}, torch::kFloat64, 2) < 0.5).to(torch::kFloat64);
  auto model = signed_model(signed_base(torch::kFloat64, 9), Smoothing::none, mask);
  fit_signed(model, of_opposite_sources(terms_of("images")), OptimizerKind::pogm, 1e-4);
  const torch::NoGradGuard no_grad;
  const auto sky = model->make_sky();
  CHECK(same(sky * mask, sky));
  CHECK(sky.min().item<double>() < 0);
  CHECK_THAT(ConvexObjective::obstacle(*model, of_opposite_sources({terms::wavelets(0.1)})), ContainsSubstring("either sign"));
}
