#include "catch.h"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/conv2d.h>

#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/hann/hann_on_gpu.h>

#include "compare.h"
#include "forced_isa.h"
#include "instruction_sets.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("hann equals a zero-padded convolution on every instruction set", "[ops][hann][quick]", float, double) {
  const auto npix = GENERATE(1, 2, 3, 31, 64, 70);
  const auto image = normal({2, 3, npix, npix}, dtype_of<TestType>(), 3);
  const auto line = torch::tensor({0.25, 0.5, 0.25}, dtype_of<TestType>());
  const auto kernel = torch::outer(line, line).expand({1, 1, 3, 3});
  const auto expected = at::conv2d(image.reshape({6, 1, npix, npix}), kernel, {}, 1, 1).reshape(image.sizes());
  for (const auto isa : instruction_sets()) {
    const ForcedIsa forced(to_string(isa));
    CAPTURE(npix, to_string(isa));
    CHECK(relative_error(ops::hann(image), expected) < tolerance<TestType>(1e-15, 1e-6));
  }
}

TEMPLATE_TEST_CASE("hann is its own adjoint", "[ops][hann][quick]", float, double) {
  const auto x = normal({2, 40, 40}, dtype_of<TestType>(), 4), y = normal({2, 40, 40}, dtype_of<TestType>(), 5);
  CHECK(adjoint_error(ops::hann(x), y, x, ops::hann(y)) < tolerance<TestType>(1e-15, 1e-7));
}

TEMPLATE_TEST_CASE("hann by the emulated kernel of a GPU is that of the CPU", "[ops][hann][cuda][quick]", float, double) {
  const auto order = GENERATE(ops::EmulatedOrder::ascending, ops::EmulatedOrder::descending);
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {2, 2}, {3, 3}, {5, 1}, {1, 7}, {31, 40}, {64, 64}, {70, 301}}) {
    CAPTURE(rows, columns);
    const auto image = normal({2, 3, rows, columns}, dtype_of<TestType>(), 3);
    auto own = torch::full_like(image, std::nan(""));
    ops::hann_on_gpu(image, own, order);
    CHECK(relative_error(own, ops::hann(image)) < tolerance<TestType>(1e-15, 1e-6));
  }
}

TEST_CASE("hann is bitwise the same for any thread count", "[ops][hann][quick]") {
  const auto image = normal({3, 130, 130}, torch::kFloat32, 6);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto expected = ops::hann(image);
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    CHECK(torch::equal(ops::hann(image), expected));
  }
  at::set_num_threads(before);
}

TEST_CASE("hann accepts strided and empty images", "[ops][hann][quick]") {
  const auto image = normal({2, 20, 20}, torch::kFloat64, 7);
  CHECK(torch::equal(ops::hann(image.transpose(1, 2)), ops::hann(image.transpose(1, 2).contiguous())));
  CHECK(ops::hann(image.narrow(0, 0, 0)).numel() == 0);
  CHECK_THROWS_AS(ops::hann(torch::zeros({3})), ShapeError);
}

TEST_CASE("hann can be differentiated twice", "[ops][hann][quick]") {
  const auto x = normal({1, 12, 12}, torch::kFloat64, 8).set_requires_grad(true);
  const auto direction = normal({1, 12, 12}, torch::kFloat64, 9);
  const auto gradient = torch::autograd::grad({ops::hann(x).square().sum()}, {x}, {}, true, true)[0];
  const auto second = torch::autograd::grad({(gradient * direction).sum()}, {x})[0];
  CHECK(relative_error(second, 2 * ops::hann(ops::hann(direction))) < 1e-14);
}
