#include "catch.h"

#include <ATen/ops/fft_fft2.h>

#include <torch/autograd.h>

#include <mpol_cpp/ops/fft/real_fft.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("the half plane transform and its adjoint are adjoint", "[ops][fft][quick]", float, double) {
  const auto npix = GENERATE(2, 4, 6, 30, 64, 106);
  const auto x = normal({2, npix, npix}, dtype_of<TestType>(), 1);
  const auto y = normal({2, npix, npix / 2 + 1}, complex_dtype_of<TestType>(), 2);
  CHECK(adjoint_error(ops::half_plane_fft(x), y, x, ops::half_plane_adjoint(y)) < tolerance<TestType>(1e-14, 1e-6));
}

TEMPLATE_TEST_CASE("the full plane transform and its adjoint are adjoint", "[ops][fft][quick]", float, double) {
  const auto npix = GENERATE(2, 4, 6, 30, 64, 106);
  const auto x = normal({2, npix, npix}, dtype_of<TestType>(), 3);
  const auto y = normal({2, npix, npix}, complex_dtype_of<TestType>(), 4);
  CHECK(adjoint_error(ops::full_plane_fft(x), y, x, ops::full_plane_adjoint(y)) < tolerance<TestType>(1e-14, 1e-6));
  CHECK(relative_error(ops::full_plane_fft(x), at::fft_fft2(x.to(torch::kFloat64))) < tolerance<TestType>(1e-14, 1e-6));
}

TEST_CASE("gradients of the transforms are those of autograd's own", "[ops][fft][quick]") {
  const auto x = normal({2, 18, 18}, torch::kFloat64, 5);
  const auto weights = normal({2, 18, 18}, torch::kComplexDouble, 6);
  const auto own = gradient_of([&](const Tensor& t) { return at::real(ops::full_plane_fft(t) * weights).square().sum(); }, x);
  const auto reference = gradient_of([&](const Tensor& t) { return at::real(at::fft_fft2(t) * weights).square().sum(); }, x);
  CHECK(relative_error(own, reference) < 1e-13);
  const auto half_weights = weights.narrow(-1, 0, 10);
  const auto own_half =
      gradient_of([&](const Tensor& t) { return at::real(ops::half_plane_fft(t) * half_weights).square().sum(); }, x);
  const auto reference_half =
      gradient_of([&](const Tensor& t) { return at::real(at::fft_fft2(t).narrow(-1, 0, 10) * half_weights).square().sum(); }, x);
  CHECK(relative_error(own_half, reference_half) < 1e-13);
}

TEST_CASE("the transforms can be differentiated twice", "[ops][fft][quick]") {
  const auto direction = normal({1, 10, 10}, torch::kFloat64, 7);
  const auto hessian_product = [&](const auto& transform) {
    const auto x = normal({1, 10, 10}, torch::kFloat64, 8).set_requires_grad(true);
    const auto value = at::real(transform(x)).pow(4).sum();
    const auto gradient = torch::autograd::grad({value}, {x}, {}, true, true)[0];
    return torch::autograd::grad({(gradient * direction).sum()}, {x})[0];
  };
  const auto expected = hessian_product([](const Tensor& t) { return at::fft_fft2(t); });
  CHECK(relative_error(hessian_product([](const Tensor& t) { return ops::full_plane_fft(t); }), expected) < 1e-13);
  const auto expected_half = hessian_product([](const Tensor& t) { return at::fft_fft2(t).narrow(-1, 0, 6); });
  CHECK(relative_error(hessian_product([](const Tensor& t) { return ops::half_plane_fft(t); }), expected_half) < 1e-13);
}
