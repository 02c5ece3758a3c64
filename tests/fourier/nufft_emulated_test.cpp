// Nufft with the kernels of a GPU, emulated on the CPU.
#include "catch.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/fourier/nufft_plans.h>

#include "compare.h"
#include "fourier/edge_baselines.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t gpu_nchan = 3;
const GridCoords gpu_grid(0.03, 16);

Baselines shared_baselines() { return edge_baselines(gpu_grid, 100, 1); }

Baselines baselines_of_channels() {
  const auto frequencies = at::tensor(std::vector<double>{2.2e11, 2.3e11, 2.4e11}, torch::kFloat64);
  const double metres = 0.4 / gpu_grid.dl() * units::speed_of_light / 2.4e11;
  const auto spread = [&](std::uint64_t seed) { return (uniform({60}, torch::kFloat64, seed) * 2 - 1) * metres; };
  return Baselines::in_metres(spread(3), spread(4), frequencies);
}

Nufft by_gpu_kernels(const Baselines& baselines, double tolerance) {
  const ScopedNufftKernels emulated(NufftKernelsOf::emulated_gpu);
  return Nufft(gpu_grid, baselines, gpu_nchan, NufftOptions{tolerance});
}

}  // namespace

TEMPLATE_TEST_CASE("a transform by emulated GPU kernels is that of the CPU", "[fourier][nufft][cuda][quick]", float, double) {
  const double tolerance = mpol::testing::tolerance<TestType>(1e-11, 1e-6);
  const double bound = mpol::testing::tolerance<TestType>(1e-10, 5e-6);
  for (const auto& baselines : {shared_baselines(), baselines_of_channels()}) {
    const auto cpu = Nufft(gpu_grid, baselines, gpu_nchan, NufftOptions{tolerance});
    const auto gpu = by_gpu_kernels(baselines, tolerance);
    const auto x = normal({2, 2, gpu_nchan, 16, 16}, dtype_of<TestType>(), 5);
    const auto y = normal({2, 2, gpu_nchan, baselines.nvis()}, complex_dtype_of<TestType>(), 6);
    CHECK(relative_error(gpu->forward(x), cpu->forward(x)) < bound);
    CHECK(relative_error(gpu->adjoint(y), cpu->adjoint(y)) < bound);
    // Views whose elements do not lie one after the other, and conjugates that are not yet taken.
    CHECK(relative_error(gpu->forward(x.transpose(-1, -2)), cpu->forward(x.transpose(-1, -2))) < bound);
    CHECK(relative_error(gpu->adjoint(y.conj()), cpu->adjoint(y.conj())) < bound);
    CHECK(adjoint_error(gpu->forward(x), y, x, gpu->adjoint(y)) < mpol::testing::tolerance<TestType>(1e-13, 1e-6));
    CHECK(gpu->memory_bytes() > 0);
  }
}

TEST_CASE("a transform by emulated GPU kernels has derivatives of any order", "[fourier][nufft][cuda][quick]") {
  const auto nufft = by_gpu_kernels(shared_baselines(), 1e-12);
  const auto x = normal({gpu_nchan, 16, 16}, torch::kFloat64, 7);
  const auto direction = normal({gpu_nchan, 16, 16}, torch::kFloat64, 8);
  const auto quartic = [&](const Tensor& image) { return at::view_as_real(nufft->forward(image)).square().sum().square(); };
  CHECK(finite_difference_error(quartic, x, direction) < 1e-7);
  CHECK(second_derivative_error(quartic, x, direction) < 1e-6);
}

TEST_CASE("a tolerance that float32 cannot have is refused by GPU kernels too", "[fourier][nufft][cuda][quick]") {
  const auto nufft = by_gpu_kernels(shared_baselines(), 1e-9);
  CHECK_NOTHROW(nufft->forward(at::zeros({gpu_nchan, 16, 16}, torch::kFloat64)));
  CHECK_THROWS_AS(nufft->forward(at::zeros({gpu_nchan, 16, 16}, torch::kFloat32)), ValueError);
}
