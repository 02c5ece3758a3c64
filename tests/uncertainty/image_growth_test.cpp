#include "catch.h"

#include <cmath>
#include <complex>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/uncertainty/flux_seen.h>
#include <mpol_cpp/uncertainty/image_growth.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords growth_grid(0.1, 48);

}  // namespace

TEMPLATE_TEST_CASE("a smoothed image is the image convolved with a Gaussian of that width", "[uncertainty][quick]", float,
                   double) {
  auto point = torch::zeros({2, 48, 48}, dtype_of<TestType>());
  point[0][24][20] = 3;
  point[1][20][24] = 1;
  CHECK(at::equal(smoothed_to(point, growth_grid, 0), point));
  const auto smoothed = smoothed_to(point, growth_grid, 0.6);
  CHECK(smoothed.scalar_type() == point.scalar_type());
  const Tensor flux = smoothed.sum({1, 2});
  CHECK(relative_error(flux, torch::tensor({3.0, 1.0}, dtype_of<TestType>())) < 1e-4);
  // Half of the maximum is half a width away: three pixels.
  const Tensor half = smoothed[0][24][23] / smoothed[0][24][20];
  CHECK(half.template item<double>() == Approx(0.5).epsilon(1e-5));
  CHECK_THROWS_AS(smoothed_to(point, growth_grid, 5), ValueError);
}

TEST_CASE("growth is a part of the image at its width", "[uncertainty][quick]") {
  const auto sky = uniform({2, 48, 48}, torch::kFloat64, 3);
  const ImageGrowth growth{at::tensor({0.5, -0.25}), at::tensor({0.0, 0.8})};
  CHECK(relative_error(growth.of_channel(0, sky[0], growth_grid), 0.5 * sky[0]) == 0);
  const auto smoothed = smoothed_to(sky.narrow(0, 1, 1), growth_grid, 0.8)[0];
  CHECK(relative_error(growth.of_channel(1, sky[1], growth_grid), -0.25 * smoothed) < 1e-12);
  CHECK(ImageGrowth().of_channel(1, sky[1], growth_grid).abs().max().item<double>() == 0);
  const auto widths = growth_widths(growth_grid);
  REQUIRE(widths.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(widths[i] == Approx(std::vector{0.0, 1.6, 0.8, 0.4}[i]));
}

TEST_CASE("what is seen of the flux is the largest amplitude on the shortest baselines", "[uncertainty][quick]") {
  // Two points, 1 Jy and 0.5 Jy, one arcsec apart from East to West; the third channel is empty.
  auto sky = torch::zeros({3, 48, 48}, torch::kFloat64);
  sky[0][24][20] = 1 / growth_grid.cell_area();
  sky[0][24][30] = 0.5 / growth_grid.cell_area();
  sky[1].copy_(2 * sky[0]);
  const auto u = at::tensor({2e4, 6e4, 1e4, 2.6e5}, torch::kFloat64), v = torch::zeros({4}, torch::kFloat64);
  const auto frequencies = at::tensor({2e11, 1e11, 3e11, 1e11}, torch::kFloat64);
  const auto metres = [](const Tensor& baselines) {
    return baselines * (units::speed_of_light / 1e11);
  };  // wavelengths of the lowest frequency
  const Visibilities data(Baselines::in_metres(metres(u), metres(v), frequencies), torch::zeros({4, 4}, torch::kComplexDouble),
                          torch::ones({4, 4}, torch::kFloat64));
  const auto amplitude = [](double baseline) {
    return std::abs(1.0 + 0.5 * std::polar(1.0, 2 * M_PI * baseline * units::arcsec)) / 1.5;
  };
  const auto cube = flux_seen(growth_grid, sky, data, ChannelMap{{{0}, {1}, {2}}});
  CHECK(cube[0].item<double>() == Approx(amplitude(2e4)).epsilon(1e-7));  // at twice the frequency
  CHECK(cube[1].item<double>() == Approx(amplitude(1e4)).epsilon(1e-7));
  CHECK(cube[2].item<double>() == 1);
  const auto continuum = flux_seen(growth_grid, sky.narrow(0, 0, 1), data, ChannelMap::continuum(4));
  CHECK(continuum[0].item<double>() == Approx(amplitude(1e4)).epsilon(1e-7));
  CHECK_THROWS_AS(flux_seen(growth_grid, sky[0], data, ChannelMap::continuum(4)), ShapeError);
}
