// Likelihoods of loose visibilities as a GPU evaluates them: by its kernels, emulated, and by operations that run anywhere.
#include "catch.h"

#include <cmath>
#include <utility>

#include <ATen/ops/cat.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/nufft_plans.h>
#include <mpol_cpp/likelihoods/block_likelihood.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/ops/gpu/first_use.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_on_gpu.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_product.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t gpu_npix = 8;  // an emulation is slow
const GridCoords gpu_sky_grid(0.05, gpu_npix);

/// What `make` gives when nonuniform transforms take a GPU's kernels, emulated.
auto by_gpu_kernels(const auto& make) {
  const ScopedNufftKernels emulated(NufftKernelsOf::emulated_gpu);
  return make();
}

enum class Sets { shared, of_channels };

/// Visibilities of an image with noise of the given signal-to-noise ratio each.
Visibilities gpu_visibilities(Sets sets, std::int64_t nchan, std::int64_t nvis, double signal_to_noise = 10) {
  const double longest = 0.9 * gpu_sky_grid.max_uv();
  const auto spread = [&](std::uint64_t seed) {
    const auto all = (2 * uniform({nchan, nvis}, torch::kFloat64, seed) - 1) * longest;
    return sets == Sets::shared ? all[0].contiguous() : all;
  };
  const auto baselines = Baselines::in_lambda(spread(1), spread(2));
  const auto model = direct_visibilities(random_image(gpu_sky_grid, nchan, torch::kFloat64, 3), gpu_sky_grid, baselines, nchan);
  const double sigma = model.abs().mean().item<double>() / signal_to_noise;
  return {baselines, model + normal({nchan, nvis}, torch::kComplexDouble, 4) * (std::sqrt(2.0) * sigma),
          (uniform({nchan, nvis}, torch::kFloat64, 5) + 0.5) / (sigma * sigma)};
}

const ChannelMap gpu_maps[] = {ChannelMap::cube(3), ChannelMap::continuum(3), ChannelMap{{{2}, {0, 1}}}};

struct Evaluated {
  Tensor value, gradient;
};

Evaluated evaluate(Likelihood& likelihood, const Tensor& sky, Accumulate accumulate = Accumulate::overwrite) {
  auto gradient = torch::full_like(sky, accumulate == Accumulate::add ? 0.5 : std::nan(""));
  const auto value = likelihood.value_and_gradient(sky, gradient, accumulate);
  return {value, gradient};
}

template <typename T>
Tensor gpu_skies(std::int64_t nchan) {
  return (uniform({2, nchan, gpu_npix, gpu_npix}, torch::kFloat64, 6) + 0.1).to(dtype_of<T>());
}

template <typename T>
void check_same(Likelihood& gpu, Likelihood& cpu, const Tensor& sky) {
  const double bound = tolerance<T>(1e-10, 2e-5);
  const auto expected = evaluate(cpu, sky), own = evaluate(gpu, sky);
  CHECK(own.value.scalar_type() == torch::kFloat64);
  CHECK(relative_error(own.value, expected.value) < bound);
  CHECK(relative_error(own.gradient, expected.gradient) < bound);
  CHECK(relative_error(evaluate(gpu, sky, Accumulate::add).gradient - 0.5, expected.gradient) < bound);
  const auto chi_squared = [&](const Tensor& x) { return gpu.chi_squared(x); };
  CHECK(relative_error(chi_squared(sky), expected.value) < bound);
  CHECK(relative_error(gradient_of(chi_squared, sky), expected.gradient) < bound);
}

}  // namespace

TEMPLATE_TEST_CASE("the loose likelihood by emulated GPU kernels is that of the CPU", "[losses][loose][cuda][quick]", float,
                   double) {
  const auto sets = GENERATE(Sets::shared, Sets::of_channels);
  const auto channels = GENERATE(from_range(std::begin(gpu_maps), std::end(gpu_maps)));
  const auto data = gpu_visibilities(sets, 3, 80);
  const double error = tolerance<TestType>(1e-12, 1e-6);
  auto cpu = LooseLikelihood(gpu_sky_grid, data, channels, NufftOptions{error});
  auto gpu = by_gpu_kernels([&] { return LooseLikelihood(gpu_sky_grid, data, channels, NufftOptions{error}); });
  check_same<TestType>(*gpu, *cpu, gpu_skies<TestType>(channels.nchan()));
  CHECK(gpu->memory_bytes() > static_cast<std::int64_t>(data.data().nbytes()));
}

TEMPLATE_TEST_CASE("likelihoods of every noise by emulated GPU kernels are those of the CPU", "[losses][noise][cuda][quick]",
                   float, double) {
  const NoiseModel models[] = {NoiseModel::gaussian(), NoiseModel::student(4), NoiseModel::huber(1.5), NoiseModel::amplitude()};
  const auto noise = GENERATE_REF(from_range(std::begin(models), std::end(models)));
  CAPTURE(to_string(noise.kind));
  const double error = tolerance<TestType>(1e-12, 1e-6);
  const auto data = gpu_visibilities(Sets::shared, 3, 60, 2);
  for (const auto& channels : gpu_maps) {
    auto cpu = NoiseLikelihood(gpu_sky_grid, data, channels, noise, NufftOptions{error});
    auto gpu = by_gpu_kernels([&] { return NoiseLikelihood(gpu_sky_grid, data, channels, noise, NufftOptions{error}); });
    check_same<TestType>(*gpu, *cpu, gpu_skies<TestType>(channels.nchan()));
  }
}

TEST_CASE("an amplitude of zero leaves the gradient of GPU operations finite", "[losses][noise][cuda][quick]") {
  const auto data = gpu_visibilities(Sets::shared, 1, 30);
  auto gpu = by_gpu_kernels([&] { return NoiseLikelihood(gpu_sky_grid, data, ChannelMap::cube(1), NoiseModel::amplitude()); });
  const auto dark = evaluate(*gpu, torch::zeros({1, gpu_npix, gpu_npix}));
  CHECK(dark.gradient.eq(0).all().item<bool>());
  CHECK(dark.value.item<double>() == Approx((data.weights() * data.data().abs().square()).sum().item<double>()).epsilon(1e-5));
}

TEST_CASE("blocks of data by emulated GPU kernels are those of the CPU, with their parameters", "[losses][loose][cuda][quick]") {
  const auto make = [&] {
    return BlockLikelihood(
        gpu_sky_grid,
        std::vector<DataBlock>{
            DataBlock(gpu_visibilities(Sets::shared, 3, 50), gpu_maps[2]),
            DataBlock(gpu_visibilities(Sets::of_channels, 2, 40), ChannelMap::cube(2)).fit_shift().fit_amplitude()},
        BlockLikelihoodOptions().transform(NufftOptions{1e-12}));
  };
  auto cpu = make(), gpu = by_gpu_kernels(make);
  const auto sky = gpu_skies<double>(2);
  check_same<double>(*gpu, *cpu, sky);
  gpu->zero_grad();  // of what check_same did
  cpu->chi_squared(sky).sum().backward();
  gpu->chi_squared(sky).sum().backward();
  for (const auto* name : {"shift_1", "log_amplitude_1"}) {
    CHECK(relative_error(gpu->named_parameters()[name].grad(), cpu->named_parameters()[name].grad()) < 1e-9);
  }
}

TEST_CASE("second derivatives of the loose likelihood by emulated GPU kernels are 2 T", "[losses][loose][cuda][quick]") {
  const auto data = gpu_visibilities(Sets::shared, 2, 80);
  const auto channels = ChannelMap::cube(2);
  const auto normal_operator = NormalOperator::of(gpu_sky_grid, data, channels);
  auto gpu = by_gpu_kernels([&] { return LooseLikelihood(gpu_sky_grid, data, channels, NufftOptions{1e-12}); });
  const auto x = gpu_skies<double>(2)[0].contiguous().set_requires_grad(true);
  const auto direction = normal(x.sizes(), torch::kFloat64, 7);
  const auto gradient = torch::autograd::grad({gpu->chi_squared(x)}, {x}, {}, true, true)[0];
  const auto second = torch::autograd::grad({(gradient * direction).sum()}, {x})[0];
  CHECK(relative_error(second, 2 * normal_operator.apply(direction)) < 1e-10);
}

TEST_CASE("LibTorch's operations multiply images as the normal operator does", "[losses][exact][cuda][quick]") {
  const auto data = gpu_visibilities(Sets::of_channels, 3, 100);
  for (const auto& channels : gpu_maps) {
    const auto normal_operator = NormalOperator::of(gpu_sky_grid, data, channels);
    const auto x = gpu_skies<double>(channels.nchan()) - 0.4;
    CHECK(relative_error(ops::toeplitz_product(x, normal_operator.kernel()), normal_operator.apply(x)) < 1e-13);
    const auto moved = normal_operator.to(torch::kCPU);
    CHECK(same(moved.apply(x), normal_operator.apply(x)));
  }
}

TEMPLATE_TEST_CASE("emulated kernels of a GPU multiply images as LibTorch does", "[losses][exact][cuda][quick]", float, double) {
  const std::int64_t npix = GENERATE(2, 6, 10, 16, 30, 54);
  const auto order = GENERATE(ops::EmulatedOrder::ascending, ops::EmulatedOrder::descending);
  const auto kernel = uniform({2, npix + 1, 2 * npix}, torch::kFloat64, 8), linear = normal({2, npix, npix}, torch::kFloat64, 9);
  const auto constant = normal({2}, torch::kFloat64, 10);
  const auto x = normal({3, 2, npix, npix}, dtype_of<TestType>(), 11);
  REQUIRE(ops::ToeplitzOnGpu::has(npix, torch::kCPU));
  const auto bound = tolerance<TestType>(1e-14, 1e-7);
  CHECK(relative_error(ops::ToeplitzOnGpu::product(x, kernel, order), ops::toeplitz_product(x, kernel)) < bound);
  for (const auto accumulate : {Accumulate::overwrite, Accumulate::add}) {
    auto own = torch::full_like(x, accumulate == Accumulate::add ? 0.5 : std::nan("")), expected = own.clone();
    const auto value = ops::ToeplitzOnGpu::quadratic(x, kernel, linear, constant, own, accumulate, order);
    CHECK(relative_error(value, ops::toeplitz_quadratic(x, kernel, linear, constant, expected, accumulate)) < 1e-14);
    CHECK(relative_error(own, expected) < bound);
  }
}

TEST_CASE("kernels that differ on a device are not used there, and a warning says so once", "[losses][cuda][quick]") {
  CHECK(ops::toeplitz_kernels_agree(torch::kCPU));
  std::vector<std::string> warnings;
  const auto before = set_log_sink([&](LogLevel, std::string_view message) { warnings.emplace_back(message); });
  int asked = 0;
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(ops::trusted_on(torch::kCPU, "a test", [&](torch::Device) { return ++asked == 0; }));
    CHECK(ops::trusted_on(torch::kCPU, "another test", [&](torch::Device) { return true; }));
  }
  set_log_sink(before);
  CHECK(asked == 1);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("a test") && ContainsSubstring("LibTorch"));
}

TEST_CASE("sizes that no kernel of a GPU multiplies are known", "[losses][exact][cuda][quick]") {
  for (const std::int64_t npix : {0, 1, 7, 14, 22, 4096}) CHECK_FALSE(ops::ToeplitzOnGpu::has(npix, torch::kCPU));
  CHECK(ops::ToeplitzOnGpu::has(3000, torch::kCPU));
  CHECK(ops::toeplitz_bytes(1024, 1) < ops::toeplitz_bytes(1022, 1));
}

TEST_CASE("images too large to be transformed together are multiplied one after the other", "[losses][exact][cuda]") {
  const auto kernel = uniform({2, 401, 800}, torch::kFloat64, 8);
  const auto x = normal({18, 2, 400, 400}, torch::kFloat64, 9);  // would take 553 MB
  const auto whole = ops::toeplitz_product(x, kernel);
  CHECK(relative_error(ops::toeplitz_product(x.narrow(0, 5, 1), kernel), whole.narrow(0, 5, 1)) < 1e-13);
}

TEMPLATE_TEST_CASE("the exact likelihood as a GPU evaluates it keeps value and gradient near the optimum",
                   "[losses][exact][cuda][quick]", float, double) {
  const double signal_to_noise = GENERATE(1e2, 1e3, 1e4);
  const auto data = gpu_visibilities(Sets::of_channels, 2, 400, signal_to_noise);
  const auto normal_operator = NormalOperator::of(gpu_sky_grid, data, ChannelMap::cube(2));
  auto precise = ExactLikelihood(normal_operator);
  const auto truth = random_image(gpu_sky_grid, 2, torch::kFloat64, 3).to(dtype_of<TestType>());
  const auto expected = evaluate(*precise, truth.to(torch::kFloat64));
  for (const auto accumulate : {Accumulate::overwrite, Accumulate::add}) {
    auto gradient = torch::full_like(truth, accumulate == Accumulate::add ? 0.0 : std::nan(""));
    const auto value = ops::toeplitz_quadratic(truth, normal_operator.kernel(), normal_operator.dirty() * -2,
                                               normal_operator.constant(), gradient, accumulate);
    CHECK(relative_error(value.sum(-1), expected.value) < 1e-6);
    CHECK(relative_error(gradient, expected.gradient) < 1e-6);
  }
}

TEST_CASE("a likelihood and an image on two devices are an error that names both", "[losses][cuda][quick]") {
  const auto data = gpu_visibilities(Sets::shared, 1, 20);
  auto exact = ExactLikelihood(gpu_sky_grid, data, ChannelMap::cube(1));
  auto loose = LooseLikelihood(gpu_sky_grid, data, ChannelMap::cube(1));
  auto noise = NoiseLikelihood(gpu_sky_grid, data, ChannelMap::cube(1), NoiseModel::student());
  const auto elsewhere = torch::zeros({1, gpu_npix, gpu_npix}, torch::TensorOptions(torch::kFloat64).device(torch::kMeta));
  for (Likelihood* likelihood :
       {static_cast<Likelihood*>(exact.get()), static_cast<Likelihood*>(loose.get()), static_cast<Likelihood*>(noise.get())}) {
    CHECK_THROWS_WITH(likelihood->chi_squared(elsewhere), ContainsSubstring("meta") && ContainsSubstring("cpu"));
    CHECK_THROWS_AS(likelihood->chi_squared(elsewhere), DeviceError);
    likelihood->as_module().to(torch::kMeta);  // a device on which none of them runs
    CHECK_THROWS_AS(likelihood->chi_squared(elsewhere), DeviceError);
  }
  auto moved = NormalOperator::of(gpu_sky_grid, data, ChannelMap::cube(1)).to(torch::kMeta);
  CHECK_THROWS_AS(moved.apply(torch::zeros({1, gpu_npix, gpu_npix})), DeviceError);
  CHECK_THROWS_AS(moved.add(data, ChannelMap::cube(1)), DeviceError);
}
