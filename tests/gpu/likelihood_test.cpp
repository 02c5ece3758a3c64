// Nonuniform transforms and the likelihoods of loose visibilities on a GPU against the CPU. Run by hand or by
// scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <cmath>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_product.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/steps/eager_step.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "required_gpu.h"
#include "placed.h"
#include "fourier/edge_baselines.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Points that are everywhere, at edges, and many in one cell.
Baselines gpu_points(const GridCoords& coords, std::int64_t random, std::int64_t crowded) {
  const auto spread = edge_baselines(coords, random, 1), dense = crowd(coords, crowded, 3);
  return Baselines::in_lambda(at::cat({spread.u(), dense.u()}), at::cat({spread.v(), dense.v()}));
}

struct Evaluation {
  Tensor value, gradient;
};

Evaluation evaluation(Likelihood& likelihood, const Tensor& sky) {
  auto gradient = torch::full_like(sky, std::nan(""));
  const auto value = likelihood.value_and_gradient(sky, gradient, Accumulate::overwrite);
  CHECK(value.device() == sky.device());
  return {value.cpu(), gradient.cpu()};
}

/// What a likelihood gives on a GPU is what it gives on the CPU, twice the same bits, and so by autograd.
template <typename T>
void check_on(torch::Device device, Likelihood& likelihood, const Tensor& sky, double bound) {
  const auto here = evaluation(likelihood, sky);
  likelihood.as_module().to(device);
  const auto there = evaluation(likelihood, sky.to(device)), again = evaluation(likelihood, sky.to(device));
  CHECK(relative_error(there.value, here.value) < bound);
  CHECK(relative_error(there.gradient, here.gradient) < bound);
  CHECK(torch::equal(again.value, there.value));
  CHECK(torch::equal(again.gradient, there.gradient));
  const auto by_autograd = gradient_of([&](const Tensor& x) { return likelihood.chi_squared(x); }, sky.to(device));
  CHECK(relative_error(by_autograd.cpu(), here.gradient) < bound);
  likelihood.as_module().to(torch::kCPU);
  const auto back = evaluation(likelihood, sky);
  CHECK(torch::equal(back.value, here.value));
  CHECK(torch::equal(back.gradient, here.gradient));
}

}  // namespace

TEMPLATE_TEST_CASE("nonuniform transforms on a GPU agree with direct sums and with the CPU", "[gpu][nufft]", float, double) {
  const auto device = required_gpu();
  const std::int64_t npix = GENERATE(8, 30, 64, 256);
  const GridCoords coords(0.03, npix);
  const auto tolerances = std::is_same_v<TestType, float> ? std::vector<double>{1e-3, 1e-4, 1e-5, 1e-6}
                                                          : std::vector<double>{1e-5, 1e-8, 1e-11, 1e-12, 1e-13};
  const auto baselines = gpu_points(coords, npix < 64 ? 400 : 4000, npix < 64 ? 400 : 9000);
  const auto x = normal({2, npix, npix}, dtype_of<TestType>(), 5);
  const auto y = normal({2, baselines.nvis()}, complex_dtype_of<TestType>(), 6);
  for (const double tolerance : tolerances) {
    CAPTURE(npix, tolerance);
    const auto nufft = Nufft(coords, baselines, 2, NufftOptions{tolerance});
    const double bound = 10 * tolerance + mpol::testing::tolerance<TestType>(1e-13, 2e-6);
    const auto forward = nufft->forward(x.to(device)).cpu(), adjoint = nufft->adjoint(y.to(device)).cpu();
    CHECK(relative_error(forward, nufft->forward(x)) < bound);
    CHECK(relative_error(adjoint, nufft->adjoint(y)) < bound);
    if (npix <= 64) {
      const auto expected = direct_visibilities(x.to(torch::kFloat64), coords, baselines, 2);
      CHECK(relative_error(forward, expected) < bound);
    }
    CHECK(adjoint_error(forward, y, x, adjoint) < mpol::testing::tolerance<TestType>(1e-13, 1e-6));
    CHECK(torch::equal(nufft->forward(x.to(device)).cpu(), forward));
    CHECK(torch::equal(nufft->adjoint(y.to(device)).cpu(), adjoint));
  }
}

TEMPLATE_TEST_CASE("a million points on a GPU are those on the CPU", "[gpu][nufft]", float, double) {
  const auto device = required_gpu();
  const GridCoords coords(0.03, 512);
  const auto baselines = gpu_points(coords, 900'000, 100'000);
  const auto nufft = Nufft(coords, baselines, 3);
  const auto x = normal({3, 512, 512}, dtype_of<TestType>(), 7);
  const auto y = normal({3, baselines.nvis()}, complex_dtype_of<TestType>(), 8);
  CHECK(relative_error(nufft->forward(x.to(device)).cpu(), nufft->forward(x)) < 2e-5);
  CHECK(relative_error(nufft->adjoint(y.to(device)).cpu(), nufft->adjoint(y)) < 2e-5);
}

TEMPLATE_TEST_CASE("likelihoods of loose visibilities on a GPU are those on the CPU", "[gpu][likelihood]", float, double) {
  const auto device = required_gpu();
  const std::int64_t npix = GENERATE(64, 90, 42);  // the last has a prime factor for which there are no line transforms
  const GridCoords coords(0.05, npix);
  const auto data = random_visibilities(coords, 3, 7);
  const auto sky = (uniform({2, 2, npix, npix}, torch::kFloat64, 9) + 0.1).to(dtype_of<TestType>());
  const ChannelMap channels{{{2}, {0, 1}}};
  const NufftOptions options{tolerance<TestType>(1e-12, 1e-6)};
  const double bound = tolerance<TestType>(1e-10, 2e-5);
  check_on<TestType>(device, *ExactLikelihood(coords, data, channels), sky, bound);
  check_on<TestType>(device, *LooseLikelihood(coords, data, channels, options), sky, bound);
  for (const auto& noise : {NoiseModel::student(), NoiseModel::huber(), NoiseModel::amplitude()}) {
    check_on<TestType>(device, *NoiseLikelihood(coords, data, channels, noise, options), sky, bound);
  }
}

TEMPLATE_TEST_CASE("the likelihood of cells on a GPU is that on the CPU", "[gpu][likelihood][small]", float, double) {
  const auto device = required_gpu();
  const std::int64_t npix = GENERATE(16, 90, 42, 360);
  const GridCoords coords(0.05, npix);
  auto likelihood = random_likelihood("gridded", coords, 2, dtype_of<TestType>());
  for (const std::int64_t problems : {1, 3}) {
    const auto sky = (uniform({problems, 2, npix, npix}, torch::kFloat64, 9) + 0.1).to(dtype_of<TestType>());
    check_on<TestType>(device, *likelihood, sky, tolerance<TestType>(1e-12, 2e-5));
  }
}

TEST_CASE("the exact likelihood on a GPU keeps the gradient of float32 near the optimum", "[gpu][likelihood]") {
  const auto device = required_gpu();
  const GridCoords coords(0.05, 64);
  const auto points = random_visibilities(coords, 2, 7).baselines();
  const auto truth = random_image(coords, 2, torch::kFloat32, 10);
  const auto model = direct_visibilities(truth.to(torch::kFloat64), coords, points, 2);
  const double sigma = 1e-3 * model.abs().mean().item<double>();
  const Visibilities data(points, model + normal(model.sizes(), torch::kComplexDouble, 11) * sigma,
                          torch::full(model.sizes(), 2 / (sigma * sigma), torch::kFloat64));
  auto exact = ExactLikelihood(coords, data, ChannelMap::cube(2));
  const auto expected = evaluation(*exact, truth.to(torch::kFloat64));
  exact->to(device);
  const auto own = evaluation(*exact, truth.to(device));
  CHECK(relative_error(own.value, expected.value) < 1e-6);
  CHECK(relative_error(own.gradient, expected.gradient) < 1e-6);
}

TEMPLATE_TEST_CASE("fused steps of loose visibilities on a GPU follow eager ones there", "[gpu][fused][likelihood]", float,
                   double) {
  const auto device = required_gpu();
  const std::string likelihood = GENERATE("exact", "loose");
  CAPTURE(likelihood);
  const SmallProblem problem{.coords = GridCoords(0.05, 64), .nchan = 3, .dtype = dtype_of<TestType>(), .likelihood = likelihood};
  const auto walk = [&](const auto& make_own_step, const Path* leader) {
    auto model = problem.model();
    const auto objective = problem.objective({terms::tsv(1e-3), terms::edge_clamp(1e-3), terms::psd(1e-16, 0.05)});
    model->to(device);
    objective.likelihood().as_module().to(device);
    const auto step = make_own_step(model, objective);
    return path_of(*model, *step, 0.1, 50, leader);
  };
  const auto expected = walk(
      [&](GriddedNet& model, const Objective& objective) -> std::unique_ptr<Step> {
        return std::make_unique<EagerStep>(model.ptr(), objective, TrainOptions(), "tested");
      },
      nullptr);
  const auto own = walk(
      [&](GriddedNet& model, const Objective& objective) -> std::unique_ptr<Step> {
        auto step = std::make_unique<FusedStep>(model.ptr(), objective, TrainOptions(), "tested");
        CHECK(step->disagreement().empty());
        return step;
      },
      &expected);
  CHECK(relative_error(own.losses, expected.losses) < tolerance<TestType>(1e-10, 1e-4));
  CHECK(relative_error(own.bases, expected.bases) < tolerance<TestType>(1e-7, 1e-2));
}
