// Kernels on a GPU against their emulation, on images so small that compute-sanitizer gets through them: what scripts/gpu_check
// sanitizes. Run by hand or by it; without a GPU they fail.
#include "catch.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/ops/proximal/gpu/gpu_cube_dual.h>
#include <mpol_cpp/ops/proximal/gpu/gpu_pixel_sums.h>
#include <mpol_cpp/ops/proximal/gpu/gpu_tv_dual.h>
#include <mpol_cpp/ops/wavelet/wavelets_on_gpu.h>

#include "compare.h"
#include "required_gpu.h"
#include "fourier/edge_baselines.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Mapped {
  Tensor x, dual;
};

/// Three calls of a map, each of which goes on where the one before ended.
template <typename Map>
Mapped mapped(Map& map, const Tensor& q, const Tensor& numbers, torch::Device device) {
  const auto there = q.to(device), weights = numbers.to(device);
  auto x = at::empty_like(there);
  for (const auto& passes : {std::vector<std::int64_t>{1, 4}, {7, 0}, {2, 3}})
    map.apply(there, {}, weights, {at::tensor(passes, torch::kInt64).to(device), 8}, x);
  return {x.cpu(), map.dual().cpu()};
}

}  // namespace

TEMPLATE_TEST_CASE("dual steps on a GPU are those of their emulation", "[gpu][solvers][small]", float, double) {
  const auto device = required_gpu();
  const auto numbers = at::tensor({0.3, 0.2, 1.0, 0.5, 0.05, 0.1}, torch::kFloat64).view({2, 3});
  const CubeWeights weights{{0.3, 0.1}, {0.2, 0.1}, {0.5, 0.4}, {0.2, 0.3}};
  for (const std::int64_t n : {2, 34, 70}) {
    CAPTURE(n);
    const auto q = (normal({2, 3, n, n}, torch::kFloat64, 3) + 0.3).to(dtype_of<TestType>());
    const auto agree = [&](auto here, auto there) {
      const auto expected = mapped(here, q, numbers, torch::kCPU), own = mapped(there, q, numbers, device);
      CHECK(relative_error(own.x, expected.x) < tolerance<TestType>(1e-12, 2e-5));
      CHECK((own.dual - expected.dual).abs().max().template item<double>() < tolerance<TestType>(1e-11, 1e-3));
    };
    for (const auto cut : {ops::TvDualCut::low, ops::TvDualCut::high})
      agree(ops::GpuTvDual(q, true, cut), ops::GpuTvDual(q.to(device), true, cut));
    agree(ops::GpuCubeDual(q, true, weights), ops::GpuCubeDual(q.to(device), true, weights));
  }
}

TEMPLATE_TEST_CASE("sums of pixels and wavelets on a GPU are those of their emulation", "[gpu][solvers][small]", float, double) {
  const auto device = required_gpu();
  const auto x = normal({2, 3, 48, 48}, dtype_of<TestType>(), 3);
  const double bound = tolerance<TestType>(1e-13, 2e-6);
  CHECK(relative_error(ops::gpu_pixel_sums(x.to(device), {1e-10, 1e-8}).cpu(), ops::gpu_pixel_sums(x, {1e-10, 1e-8})) < bound);
  const std::vector<std::int64_t> moments = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto y = ops::wavelet_analysis_on_gpu(x, moments, 4);
  CHECK(relative_error(ops::wavelet_analysis_on_gpu(x.to(device), moments, 4).cpu(), y) < bound);
  const auto back = ops::wavelet_synthesis_on_gpu(y, moments, 4);
  CHECK(relative_error(ops::wavelet_synthesis_on_gpu(y.to(device), moments, 4).cpu(), back) < bound);
}

TEMPLATE_TEST_CASE("a small nonuniform transform on a GPU is that on the CPU", "[gpu][nufft][small]", float, double) {
  const auto device = required_gpu();
  const GridCoords coords(0.03, 30);
  const auto baselines = edge_baselines(coords, 300, 1);
  const auto x = normal({3, 30, 30}, dtype_of<TestType>(), 5);
  const auto y = normal({3, baselines.nvis()}, complex_dtype_of<TestType>(), 6);
  const auto nufft = Nufft(coords, baselines, 3, NufftOptions{1e-5});
  CHECK(relative_error(nufft->forward(x.to(device)).cpu(), nufft->forward(x)) < 2e-5);
  CHECK(relative_error(nufft->adjoint(y.to(device)).cpu(), nufft->adjoint(y)) < 2e-5);
}
