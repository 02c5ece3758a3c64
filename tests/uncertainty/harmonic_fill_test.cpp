#include "catch.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/uncertainty/harmonic_fill.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// 1 on a disc that may reach over the edge, 0 elsewhere.
Tensor marked_disc(std::int64_t npix, double row, double column, double radius) {
  const auto at = at::arange(npix, torch::kFloat64);
  return ((at - row).square().unsqueeze(1) + (at - column).square() <= radius * radius).to(torch::kFloat64);
}

}  // namespace

TEMPLATE_TEST_CASE("a filled pixel is the mean of its neighbours, the others stay", "[uncertainty][quick]", float, double) {
  const std::int64_t npix = 20;
  const auto images = uniform({2, npix, npix}, dtype_of<TestType>(), 5);
  const auto [row, column] = GENERATE(std::pair{9.0, 11.0}, std::pair{0.0, 18.5});
  const auto region = marked_disc(npix, row, column, 4.2);
  const auto filled = harmonic_fill(images, region);
  REQUIRE(filled.scalar_type() == images.scalar_type());
  CHECK(at::equal(at::where(region == 0, filled, 0), at::where(region == 0, images, 0)));
  CHECK_FALSE(at::equal(filled, images));
  const auto value = filled.to(torch::kFloat64);
  for (std::int64_t i = 0; i < npix; ++i) {
    for (std::int64_t j = 0; j < npix; ++j) {
      if (region[i][j].template item<double>() == 0) continue;
      double sum = 0;
      int count = 0;
      for (const auto& [di, dj] : {std::pair{-1, 0}, std::pair{1, 0}, std::pair{0, -1}, std::pair{0, 1}}) {
        if (i + di < 0 || i + di >= npix || j + dj < 0 || j + dj >= npix) continue;
        sum += value[1][i + di][j + dj].template item<double>();
        ++count;
      }
      CHECK(value[1][i][j].template item<double>() == Approx(sum / count).margin(tolerance<TestType>(1e-10, 1e-6)));
    }
  }
}

TEMPLATE_TEST_CASE("a slope goes on through the region, which no pixel leaves the range of its surroundings",
                   "[uncertainty][quick]", float, double) {
  const std::int64_t npix = 24;
  const auto at = at::arange(npix, torch::kFloat64);
  const auto slope = (0.3 + 0.02 * at.unsqueeze(1) + 0.05 * at).to(dtype_of<TestType>());
  const auto region = marked_disc(npix, 11, 12, 5);
  const auto with_clump = at::where(region != 0, slope + 7, slope);
  CHECK(relative_error(harmonic_fill(with_clump, region), slope) < tolerance<TestType>(1e-11, 1e-6));

  const auto noise = uniform({npix, npix}, dtype_of<TestType>(), 6);
  const auto filled = harmonic_fill(noise, region), of_region = filled.masked_select(region != 0);
  const auto outside = noise.masked_select(region == 0);
  CHECK(of_region.min().template item<double>() >= outside.min().template item<double>());
  CHECK(of_region.max().template item<double>() <= outside.max().template item<double>());
  CHECK(relative_error(harmonic_fill(noise + 3 * slope, region), filled + 3 * harmonic_fill(slope, region)) <
        tolerance<TestType>(1e-11, 1e-6));
}

TEST_CASE("a window solves Poisson's equation: on a disc it is the square of a paraboloid", "[uncertainty][quick]") {
  const std::int64_t npix = 64;
  const auto region = marked_disc(npix, 31, 33, 25.3), window = smooth_window(region);
  CHECK(at::equal(window == 0, region == 0));
  CHECK(window.max().item<double>() == 1);
  const auto at = at::arange(npix, torch::kFloat64);
  const auto radii = ((at - 31).square().unsqueeze(1) + (at - 33).square()) / (25.8 * 25.8);
  const auto paraboloid = at::where(region != 0, (1 - radii).square(), 0);
  CHECK(relative_error(window, paraboloid) < 0.02);
  const auto both = smooth_window(at::stack({region, at::zeros_like(region)}));
  CHECK(at::equal(both[0], window));
  CHECK(both[1].abs().max().item<double>() == 0);
  CHECK_THROWS_AS(smooth_window(at::ones({8, 8})), ValueError);
  CHECK_THROWS_AS(smooth_window(at::ones({8})), ShapeError);
}

TEST_CASE("what cannot be filled is refused, and no mark changes nothing", "[uncertainty][quick]") {
  const auto images = uniform({2, 8, 8}, torch::kFloat64, 7);
  CHECK(at::equal(harmonic_fill(images, at::zeros({8, 8})), images));
  CHECK_THROWS_AS(harmonic_fill(images, at::ones({8, 8})), ValueError);
  CHECK_THROWS_AS(harmonic_fill(images, at::ones({8, 7})), ShapeError);
  CHECK_THROWS_AS(harmonic_fill(images[0][0], at::ones({8})), ShapeError);
}
