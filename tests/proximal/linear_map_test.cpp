#include "catch.h"

#include <cmath>
#include <memory>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/proximal/linear_map.h>
#include <mpol_cpp/proximal/wavelet_dictionary.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("linear maps and their adjoints agree", "[proximal][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto differences = std::make_shared<ImageDifferences>();
  const std::vector<std::shared_ptr<LinearMap>> maps = {
      std::make_shared<IdentityMap>(),
      differences,
      std::make_shared<ImageDifferences>(Boundary::periodic),
      std::make_shared<StackedMap>(std::vector<std::shared_ptr<const LinearMap>>{differences, std::make_shared<IdentityMap>()},
                                   std::vector<std::int64_t>{4, 2}),
      std::make_shared<WaveletTransform>(3, 2),
      std::make_shared<SaraDictionary>(SaraOptions{8, 3})};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    CAPTURE(i);
    const auto x = normal({3, 2, 16, 24}, dtype, 1);
    const auto ax = maps[i]->apply(x);
    const auto y = normal(ax.sizes(), dtype, 2);
    CHECK(ax.scalar_type() == dtype);
    CHECK(adjoint_error(ax, y, x, maps[i]->adjoint(y)) < tolerance<TestType>(1e-14, 1e-6));
  }
}

TEST_CASE("Daubechies filters are orthogonal to their shifts and blind to polynomials", "[proximal][quick]") {
  for (std::int64_t n = 1; n <= 8; ++n) {
    CAPTURE(n);
    const auto filter = at::tensor(daubechies_filter(n), torch::kFloat64);
    REQUIRE(filter.numel() == 2 * n);
    CHECK(filter.sum().item<double>() == Approx(std::sqrt(2.0)).epsilon(1e-14));
    for (std::int64_t shift = 0; shift < n; ++shift) {
      const auto product = filter.narrow(0, 2 * shift, 2 * (n - shift)).dot(filter.narrow(0, 0, 2 * (n - shift)));
      CHECK_THAT(product.item<double>(), WithinAbs(shift == 0 ? 1 : 0, 1e-13));
    }
    const auto place = at::arange(2 * n, torch::kFloat64) / (2.0 * static_cast<double>(n));
    const auto signs = 1 - 2 * (at::arange(2 * n, torch::kFloat64).remainder(2));
    for (std::int64_t power = 0; power < n; ++power) {
      CHECK_THAT((filter.flip(0) * signs * place.pow(static_cast<double>(power))).sum().item<double>(), WithinAbs(0, 1e-12));
    }
  }
  // The one that is known in closed form.
  const auto two = daubechies_filter(2);
  const double root = std::sqrt(3.0), scale = 4 * std::sqrt(2.0);
  CHECK(two[0] == Approx((1 + root) / scale).epsilon(1e-14));
  CHECK(two[1] == Approx((3 + root) / scale).epsilon(1e-14));
  CHECK(two[3] == Approx((1 - root) / scale).epsilon(1e-13));
  CHECK_THROWS_AS(daubechies_filter(0), ValueError);
  CHECK_THROWS_AS(daubechies_filter(9), ValueError);
}

TEMPLATE_TEST_CASE("wavelets are orthogonal and SARA's dictionary is a tight frame", "[proximal][quick]", float, double) {
  const auto x = normal({2, 2, 32, 16}, dtype_of<TestType>(), 3);
  const double bound = tolerance<TestType>(1e-12, 1e-5);
  for (std::int64_t n = 1; n <= 8; ++n) {
    const WaveletTransform wavelet(n, 3);
    const auto y = wavelet.apply(x);
    CHECK(relative_error(problem_sums(y.square()), problem_sums(x.square())) < bound);
    CHECK(relative_error(wavelet.adjoint(y), x) < bound);
    CHECK(relative_error(wavelet.apply(wavelet.adjoint(x)), x) < bound);
  }
  const SaraDictionary sara(SaraOptions{8, 3});
  CHECK(sara.bases() == 9);
  CHECK(sara.apply(x).size(-3) == 18);
  CHECK(relative_error(sara.adjoint(sara.apply(x)), x) < bound);
  // What is constant is in the lowest frequencies alone.
  const auto flat = WaveletTransform(4, 3).apply(at::ones({1, 32, 16}, x.options()));
  CHECK(relative_error(flat.narrow(-2, 0, 4).narrow(-1, 0, 2).square().sum(), at::full({}, 512.0)) < bound);
  CHECK_THROWS_AS(sara.apply(normal({1, 12, 12}, torch::kFloat32, 1)), ShapeError);
  CHECK_THROWS_AS(SaraDictionary(SaraOptions{0, 3}), ValueError);
  CHECK_THROWS_AS(SaraDictionary(SaraOptions{8, 0}), ValueError);
}

TEST_CASE("power steps find the largest eigenvalue of each problem", "[proximal][quick]") {
  const auto like = at::ones({3, 1, 12, 12}, torch::kFloat64);
  const auto factors = at::tensor({1.0, 2.0, 5.0}, torch::kFloat64).view({3, 1, 1, 1});
  const LinearFunctions scaled([&](const Tensor& x) { return x * factors; }, [&](const Tensor& y) { return y * factors; });
  CHECK(relative_error(squared_norm(scaled, like, {50, 1e-8, 1.0}), at::tensor({1.0, 4.0, 25.0}, torch::kFloat64)) < 1e-8);
  // Of differences that are not periodic: 8 cos^2(pi / 2 n).
  const double wanted = 8 * std::pow(std::cos(3.14159265358979 / 24), 2);
  CHECK(squared_norm(ImageDifferences(), like, {3000, 1e-9, 1.0})[0].item<double>() == Approx(wanted).epsilon(1e-3));
  CHECK_THROWS_AS(squared_norm(scaled, like, {0, 1e-8, 1.0}), ValueError);
}
