#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/einsum.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/uncertainty/dirty_noise.h>

#include "compare.h"
#include "random.h"
#include "threads.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords noise_grid(0.05, 16);

/// (draws, nchan, npix, npix)
Tensor draws_of(const DirtyNoise& noise) {
  std::vector<Tensor> draws;
  for (std::uint64_t i = 0; i < 150; ++i) draws.push_back(noise.draw(3, i));
  return at::stack(draws);
}

/// Mean of <nu, x>^2 over draws, for each image and channel. @param images  (images, nchan, npix, npix)
Tensor mean_square(const Tensor& draws, const Tensor& images) {
  return at::einsum("dcyx,icyx->dic", {draws, images}).square().mean(0);
}

/// Each pixel by itself, in all channels.
Tensor points(std::int64_t nchan) { return torch::eye(256, torch::kFloat64).view({256, 1, 16, 16}).expand({256, nchan, 16, 16}); }

}  // namespace

TEST_CASE("draws of the noise have the covariance of the normal operator", "[uncertainty][quick]") {
  const auto nchan = GENERATE(1, 2);
  const auto channels = nchan == 1 ? ChannelMap::continuum(2) : ChannelMap::cube(2);
  const auto visibilities = random_visibilities(noise_grid, 2, 5);
  const auto draws = draws_of(DirtyNoise(noise_grid, visibilities, channels));
  const auto operator_of_data = NormalOperator::of(noise_grid, visibilities, channels);
  const auto check = [&](const Tensor& images) {
    const auto expected = (images * operator_of_data.apply(images)).sum({-2, -1});
    CHECK(relative_error((mean_square(draws, images) / expected).mean(0), torch::ones({nchan}, torch::kFloat64)) < 0.08);
  };
  check(points(nchan));
  check(normal({100, nchan, 16, 16}, torch::kFloat64, 9));
  check(normal({100, nchan, 16, 16}, torch::kFloat64, 10).cumsum(-1));
}

TEST_CASE("draws of the noise of cells have the variance of their weights", "[uncertainty][quick]") {
  const auto visibilities = random_visibilities(noise_grid, 1, 5);
  const auto dataset =
      DataAverager(noise_grid, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  const double expected = std::pow(noise_grid.cell_area(), 2) * dataset->weights().sum().item<double>();
  CHECK(mean_square(draws_of(DirtyNoise(dataset)), points(1)).mean().item<double>() == Approx(expected).epsilon(0.08));
}

TEST_CASE("a draw of the noise is the same whatever came before, and draws differ", "[uncertainty][quick]") {
  const auto visibilities = random_visibilities(noise_grid, 2, 5);
  const DirtyNoise noise(noise_grid, visibilities, ChannelMap::cube(2));
  const auto third = noise.draw(1, 3);
  noise.draw(1, 7);
  CHECK(at::equal(noise.draw(1, 3), third));
  const Threads one(1);
  CHECK(at::equal(DirtyNoise(noise_grid, visibilities, ChannelMap::cube(2)).draw(1, 3), third));
  const auto correlation = [&](const Tensor& a, const Tensor& b) {
    return ((a * b).sum() / (a.norm() * b.norm())).item<double>();
  };
  CHECK(std::abs(correlation(third, noise.draw(1, 4))) < 0.5);
  CHECK(std::abs(correlation(third, noise.draw(2, 3))) < 0.5);
  CHECK(std::abs(correlation(third[0], third[1])) < 0.5);
}
