#include "catch.h"

#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/gridding/data_averager.h>

#include "compare.h"
#include "observation.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("an automatic start is positive and as bright as fits the cells best, each channel by itself",
          "[gridding][start][quick]") {
  const GridCoords coords(0.05, 32);
  const auto dataset = DataAverager(coords, random_observation(coords, 2, 4000, torch::kFloat64, 11), unchecked()).to_dataset();
  const auto start = auto_start(dataset);
  REQUIRE(start.sizes() == torch::IntArrayRef({2, 32, 32}));
  CHECK(start.min().item<double>() > 0);
  FourierCube fourier(coords);
  const auto chi_squared = [&](const Tensor& sky) {
    const Tensor left = dataset->at_cells(fourier->forward(sky)) - dataset->visibilities();
    return (dataset->weights() * left.abs().square()).sum().item<double>();
  };
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    auto direction = at::zeros_like(start);
    direction[channel] = start[channel];
    const double here = chi_squared(start);
    CHECK(here < chi_squared(start + 0.01 * direction));
    CHECK(here < chi_squared(start - 0.01 * direction));
  }
}

TEMPLATE_TEST_CASE("an automatic start from visibilities is that from their cells", "[gridding][start][quick]", float, double) {
  const GridCoords coords(0.05, 32);
  const auto visibilities = random_observation(coords, 3, 2000, dtype_of<TestType>(), 12);
  for (const auto& channels : {ChannelMap::cube(3), ChannelMap::continuum(3)}) {
    const auto cells = DataAverager(coords, visibilities, unchecked().channel_map(channels)).to_dataset();
    CHECK(same(auto_start(coords, visibilities, channels), auto_start(cells)));
  }
  CHECK_THROWS_AS(auto_start(coords, visibilities, ChannelMap::cube(4)), ValueError);
  CHECK_THROWS_AS(auto_start(GridCoords(0.5, 32), visibilities, ChannelMap::cube(3)), DataError);
}
