// The kernels of the dual steps of total variation on a GPU, emulated, against LibTorch's operations.
#include "catch.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/proximal/gpu/gpu_tv_dual.h>
#include <mpol_cpp/solvers/tv_proximal.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using ops::TvDualCut, ops::EmulatedOrder;

namespace {

const std::vector<double> term_weights = {0.3, 0.2, 1, 0, 0.05, 0.1};

Tensor noisy(std::int64_t n, torch::Dtype dtype, std::uint64_t seed) {
  return (normal({3, 2, n, n}, torch::kFloat64, seed) + 0.3).to(dtype);
}

}  // namespace

TEMPLATE_TEST_CASE("dual steps of a GPU are those of LibTorch's operations, however images are cut", "[ops][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  const auto hann = GENERATE(false, true);
  const auto cut = GENERATE(TvDualCut::low, TvDualCut::high, TvDualCut::odd);
  const auto order = GENERATE(EmulatedOrder::ascending, EmulatedOrder::descending);
  const auto own_weights = at::tensor(term_weights, torch::kFloat64);
  for (const std::int64_t n : {2, 3, 8, 34, 70}) {
    CAPTURE(n, hann, static_cast<int>(cut));
    const auto mask = n == 8 ? (uniform({3, 2, n, n}, torch::kFloat64, 2) < 0.8).to(dtype) : Tensor();
    ops::GpuTvDual kernels(noisy(n, dtype, 1), hann, cut, order);
    TvProximal tensors(noisy(n, dtype, 1), hann, mask, TvProximal::By::tensors);
    // The second begins where the first ended; the recorded number of passes may be more than any problem takes.
    for (const auto& passes : {std::vector<std::int64_t>{1, 4, 2}, {3, 0, 9}}) {
      const auto q = noisy(n, dtype, static_cast<std::uint64_t>(passes[2]));
      auto x = torch::full_like(q, std::nan("")), reference = at::empty_like(q);
      kernels.apply(q, mask, own_weights, {at::tensor(passes, torch::kInt64), passes[2] + 3}, x);
      tensors.apply(q, term_weights, passes, reference);
      CHECK(relative_error(x, reference) < tolerance<TestType>(1e-13, 2e-5));
      CHECK((kernels.dual() - tensors.dual()).abs().max().template item<double>() < tolerance<TestType>(1e-12, 1e-3));
    }
  }
}

TEMPLATE_TEST_CASE("what many blocks say of turning is added up in groups", "[ops]", float, double) {
  const auto q = normal({1, 3, 130, 130}, dtype_of<TestType>(), 4);
  ops::GpuTvDual grouped(q, true, TvDualCut::odd), direct(q, true, TvDualCut::high);
  const auto own_weights = at::tensor({0.4, 0.1, 0.2}, torch::kFloat64);
  auto x = at::empty_like(q), other = at::empty_like(q);
  const auto passes = at::tensor({std::int64_t{30}}, torch::kInt64);
  grouped.apply(q, {}, own_weights, {passes, 30}, x);
  direct.apply(q, {}, own_weights, {passes, 30}, other);
  CHECK(relative_error(x, other) < tolerance<TestType>(1e-12, 1e-4));
}

TEST_CASE("a proximal map by a GPU's kernels takes numbers of either side, and goes on from a saved dual", "[solvers][quick]") {
  const auto q = noisy(12, torch::kFloat64, 3);
  TvProximal map(q, true, {}, TvProximal::By::gpu_kernels), other(q, true, {}, TvProximal::By::gpu_kernels);
  auto x = at::empty_like(q), same_x = at::empty_like(q);
  const std::vector<std::int64_t> passes = {6, 6, 6};
  map.apply(q, term_weights, passes, x);
  other.set_dual(map.dual());
  map.apply(q, term_weights, passes, x);
  other.apply(q, at::tensor(term_weights, torch::kFloat64).view({3, 2, 1, 1}), {at::tensor(passes, torch::kInt64), 6}, same_x);
  CHECK(torch::equal(x, same_x));
  CHECK(torch::equal(map.dual(), other.dual()));
}

TEST_CASE("a GPU's dual steps refuse what they cannot count", "[ops][quick]") {
  CHECK_THROWS_AS(ops::GpuTvDual(torch::zeros({1, 1, 4, 4}, torch::kInt64), true), ValueError);
}
