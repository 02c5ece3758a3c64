// Regularizers that look along channels: group sparsity and spectral smoothness.
#include "catch.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/regularizers/regularizers.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("regularizers of spectra are the sums that their formulas name", "[regularizers][quick]", float, double) {
  const std::int64_t nchan = 6, npix = 9;
  const Tensor cube = normal({nchan, npix, npix}, torch::kFloat64, 11).to(dtype_of<TestType>());
  const Tensor values = cube.to(torch::kFloat64).contiguous();
  const auto pixels = values.accessor<double, 3>();
  double norms = 0, bends = 0;
  for (std::int64_t i = 0; i < npix; ++i) {
    for (std::int64_t j = 0; j < npix; ++j) {
      double squares = 1e-6;
      for (std::int64_t c = 0; c < nchan; ++c) squares += std::pow(pixels[c][i][j], 2);
      norms += std::sqrt(squares);
      for (std::int64_t c = 1; c + 1 < nchan; ++c)
        bends += std::pow(pixels[c - 1][i][j] - 2 * pixels[c][i][j] + pixels[c + 1][i][j], 2);
    }
  }
  const double bound = tolerance<TestType>(1e-13, 1e-6);
  CHECK(losses::group_sparsity(cube, 1e-6).item<double>() == Approx(norms).epsilon(bound));
  CHECK(losses::spectral_smoothness(cube).item<double>() == Approx(bends).epsilon(bound));
}

TEST_CASE("group sparsity is the sparsity of one channel, and of equal channels times their root", "[regularizers][quick]") {
  const auto image = normal({1, 12, 12}, torch::kFloat64, 3);
  const double one = losses::sparsity(image).item<double>();
  CHECK(losses::group_sparsity(image, 1e-20).item<double>() == Approx(one).epsilon(1e-9));
  CHECK(losses::group_sparsity(image.expand({5, 12, 12}), 1e-20).item<double>() == Approx(std::sqrt(5.0) * one).epsilon(1e-9));
  // Flux that shares its pixel costs less than flux apart.
  auto together = at::zeros({2, 4, 4}, torch::kFloat64), apart = at::zeros({2, 4, 4}, torch::kFloat64);
  together[0][1][1] = together[1][1][1] = apart[0][1][1] = apart[1][2][2] = 1;
  CHECK(losses::group_sparsity(together).item<double>() < 0.75 * losses::group_sparsity(apart).item<double>());
  CHECK(losses::sparsity(together).item<double>() == losses::sparsity(apart).item<double>());
  CHECK(losses::group_sparsity(image.permute({0, 2, 1}), 1e-8).item<double>() ==
        Approx(losses::group_sparsity(image, 1e-8).item<double>()).epsilon(1e-13));
}

TEST_CASE("group sparsity has a gradient where spectra are dark", "[regularizers][quick]") {
  const auto gradient =
      gradient_of([](const Tensor& x) { return losses::group_sparsity(x); }, at::zeros({3, 4, 4}, torch::kFloat64));
  CHECK(gradient.abs().max().item<double>() == 0);
  CHECK_THROWS_AS(losses::group_sparsity(at::zeros({3, 4, 4}), 0.0), ValueError);
  CHECK_THROWS_AS(losses::group_sparsity(at::zeros({3, 4, 4}), 1e-40), ValueError);
  CHECK_THROWS_AS(losses::group_sparsity(at::zeros({4, 4})), ShapeError);
}

TEST_CASE("straight spectra and too few channels cost nothing, and the order of channels may turn", "[regularizers][quick]") {
  const auto slope = normal({1, 8, 8}, torch::kFloat64, 5), offset = normal({1, 8, 8}, torch::kFloat64, 6);
  const auto straight = offset + slope * at::arange(7, torch::kFloat64).view({7, 1, 1});
  CHECK(losses::spectral_smoothness(straight).item<double>() < 1e-24);
  const auto cube = normal({2, 7, 8, 8}, torch::kFloat64, 7);
  CHECK(relative_error(losses::spectral_smoothness(cube + straight), losses::spectral_smoothness(cube)) < 1e-12);
  CHECK(relative_error(losses::spectral_smoothness(cube.flip({1})), losses::spectral_smoothness(cube)) < 1e-12);
  CHECK(relative_error(losses::spectral_smoothness(3 * cube), 9 * losses::spectral_smoothness(cube)) < 1e-12);
  for (const std::int64_t few : {1, 2}) {
    const auto value = losses::spectral_smoothness(cube.narrow(1, 0, few));
    CHECK(value.sizes() == at::IntArrayRef({2}));
    CHECK(value.abs().max().item<double>() == 0);
    const auto loss = [](const Tensor& x) { return losses::spectral_smoothness(x); };
    CHECK(gradient_of(loss, cube.narrow(1, 0, few).contiguous()).abs().max().item<double>() == 0);
  }
  CHECK_THROWS_AS(losses::spectral_smoothness(at::zeros({4, 4})), ShapeError);
}
