// Orthogonal wavelet transforms of images by kernels, against their sums and against LibTorch's operations.
#include "catch.h"

#include <cstdint>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/wavelet/daubechies.h>
#include <mpol_cpp/ops/wavelet/sara_bases.h>
#include <mpol_cpp/ops/wavelet/wavelet_transform.h>
#include <mpol_cpp/ops/wavelet/wavelets_on_gpu.h>

#include "compare.h"
#include "forced_isa.h"
#include "instruction_sets.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const std::vector<std::int64_t> all_moments = {1, 2, 3, 4, 5, 6, 7, 8};

/// One level along a row of n values, by the sums that define it: low[j] = sum_k h_k x_{(2 j + k) mod n}, high alike with g.
std::vector<double> split_row(const std::vector<double>& row, const ops::DaubechiesFilters& filters) {
  const auto n = row.size();
  std::vector<double> out(n, 0.0);
  for (std::size_t j = 0; j < n / 2; ++j) {
    for (std::size_t k = 0; k < filters.low.size(); ++k) {
      out[j] += filters.low[k] * row[(2 * j + k) % n];
      out[n / 2 + j] += filters.high[k] * row[(2 * j + k) % n];
    }
  }
  return out;
}

Tensor split_rows(const Tensor& image, const ops::DaubechiesFilters& filters) {
  auto out = at::empty(image.sizes(), image.options());
  const auto own = image.contiguous();
  const auto n = static_cast<std::size_t>(own.size(1));
  for (std::int64_t r = 0; r < own.size(0); ++r) {
    const auto* row = own.const_data_ptr<double>() + r * own.size(1);
    const auto taken = split_row({row, row + n}, filters);
    std::copy(taken.begin(), taken.end(), out.mutable_data_ptr<double>() + r * own.size(1));
  }
  return out;
}

/// (rows, columns) float64
Tensor transformed(const Tensor& image, std::int64_t moments, std::int64_t levels) {
  const auto& filters = ops::daubechies_filters(moments);
  auto y = image.clone();
  for (std::int64_t level = 0; level < levels; ++level) {
    auto low = y.narrow(0, 0, y.size(0) >> level).narrow(1, 0, y.size(1) >> level);
    low.copy_(split_rows(split_rows(low, filters).t(), filters).t());
  }
  return y;
}

struct Extent {
  std::int64_t rows, columns, levels;
};
const std::vector<Extent> extents = {{2, 2, 1}, {4, 12, 2}, {14, 14, 1}, {48, 16, 4}, {72, 72, 3}};

}  // namespace

TEMPLATE_TEST_CASE("wavelet transforms by a GPU's kernels, emulated, are those of LibTorch's operations",
                   "[ops][wavelets][quick]", float, double) {
  const double bound = tolerance<TestType>(1e-13, 2e-6);
  for (const auto& extent : extents) {
    CAPTURE(extent.rows, extent.columns, extent.levels);
    const auto x = normal({2, 3, extent.rows, extent.columns}, dtype_of<TestType>(), 3);
    const auto y = ops::wavelet_analysis_on_gpu(x, all_moments, extent.levels);
    CHECK(relative_error(y, ops::wavelet_analysis_by_tensors(x, all_moments, extent.levels)) < bound);
    const auto other = normal(y.sizes(), dtype_of<TestType>(), 4);
    const auto back = ops::wavelet_synthesis_on_gpu(other, all_moments, extent.levels);
    CHECK(relative_error(back, ops::wavelet_synthesis_by_tensors(other, all_moments, extent.levels)) < bound);
    CHECK(inner_product(y, other) == Approx(inner_product(x, back)).epsilon(tolerance<TestType>(1e-12, 1e-4)));
  }
  const auto x = normal({8, 8}, dtype_of<TestType>(), 3);
  CHECK_THROWS_AS(ops::wavelet_analysis_on_gpu(x, std::vector<std::int64_t>(9, 1), 1), ValueError);
}

TEMPLATE_TEST_CASE("wavelet transforms by kernels are their sums, on every instruction set", "[ops][wavelets][quick]", float,
                   double) {
  for (const auto isa : instruction_sets()) {
    const ForcedIsa forced(to_string(isa));
    for (const auto& extent : extents) {
      CAPTURE(to_string(isa), extent.rows, extent.columns);
      const auto x = normal({2, extent.rows, extent.columns}, torch::kFloat64, 3);
      const auto y = ops::wavelet_analysis(x.to(dtype_of<TestType>()), all_moments, extent.levels);
      REQUIRE(y.sizes() == at::IntArrayRef({8, 2, extent.rows, extent.columns}));
      for (const auto n : all_moments) {
        const auto expected = transformed(x[1], n, extent.levels);
        CHECK(relative_error(y[n - 1][1].to(torch::kFloat64), expected) < tolerance<TestType>(1e-13, 1e-6));
      }
    }
  }
}

TEMPLATE_TEST_CASE("wavelet synthesis is the adjoint of the analysis, and of one transform its inverse", "[ops][wavelets][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const auto isa : instruction_sets()) {
    const ForcedIsa forced(to_string(isa));
    for (const auto& extent : extents) {
      const auto x = normal({2, extent.rows, extent.columns}, dtype, 1);
      const auto y = ops::wavelet_analysis(x, all_moments, extent.levels);
      const auto other = normal(y.sizes(), dtype, 2);
      CHECK(adjoint_error(y, other, x, ops::wavelet_synthesis(other, all_moments, extent.levels)) <
            tolerance<TestType>(1e-13, 2e-6));
      for (const auto n : all_moments)
        CHECK(relative_error(ops::wavelet_synthesis(y.narrow(0, n - 1, 1), {n}, extent.levels), x) <
              tolerance<TestType>(1e-13, 2e-6));
      CHECK(relative_error(ops::wavelet_analysis_by_tensors(x, all_moments, extent.levels), y) <
            tolerance<TestType>(1e-13, 2e-6));
      CHECK(relative_error(ops::wavelet_synthesis_by_tensors(other, all_moments, extent.levels),
                           ops::wavelet_synthesis(other, all_moments, extent.levels)) < tolerance<TestType>(1e-13, 2e-6));
    }
  }
}

TEMPLATE_TEST_CASE("wavelet transforms have the same bits for any number of threads", "[ops][wavelets][quick]", float, double) {
  const auto x = normal({3, 64, 64}, dtype_of<TestType>(), 1);
  const auto run = [&](int threads) {
    const Threads own(threads);
    const auto y = ops::SaraBases(64).analyze(x);
    return std::pair(y, ops::SaraBases(64).synthesize(y));
  };
  const auto [y, back] = run(1);
  CHECK(relative_error(back, x * 8) < tolerance<TestType>(1e-13, 1e-6));
  const auto [other, other_back] = run(3);
  CHECK(same(other, y));
  CHECK(same(other_back, back));
}

TEST_CASE("wavelet transforms are differentiable, twice", "[ops][wavelets][quick]") {
  auto x = normal({1, 12, 12}, torch::kFloat64, 1).requires_grad_();
  const auto weights = uniform({8, 1, 12, 12}, torch::kFloat64, 2);
  const auto value = (ops::wavelet_analysis(x, all_moments, 2).pow(3) * weights).sum();
  const auto slope = torch::autograd::grad({value}, {x}, {}, true, true).front();
  const auto direction = normal({1, 12, 12}, torch::kFloat64, 3);
  const auto bend = torch::autograd::grad({(slope * direction).sum()}, {x}).front();
  const torch::NoGradGuard no_grad;
  const auto y = ops::wavelet_analysis(x, all_moments, 2), along = ops::wavelet_analysis(direction, all_moments, 2);
  CHECK(relative_error(slope, ops::wavelet_synthesis(3 * y.square() * weights, all_moments, 2)) < 1e-12);
  CHECK(relative_error(bend, ops::wavelet_synthesis(6 * y * along * weights, all_moments, 2)) < 1e-12);
}

TEST_CASE("images are split as often as their pixels allow, and no odd ones", "[ops][wavelets][quick]") {
  CHECK(ops::wavelet_levels(128, 4) == 4);
  CHECK(ops::wavelet_levels(200, 4) == 3);
  CHECK(ops::wavelet_levels(14, 4) == 1);
  CHECK(ops::wavelet_levels(15, 4) == 0);
  CHECK_THROWS_AS(ops::SaraBases(15).analyze(at::zeros({1, 15, 15})), ShapeError);
  CHECK_THROWS_AS(ops::wavelet_analysis(at::zeros({1, 12, 12}), {1}, 3), ShapeError);
  CHECK_THROWS_AS(ops::wavelet_analysis(at::zeros({1, 12, 12}), {9}, 1), ValueError);
}
