#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords prediction_grid(0.05, 24);

Visibilities predicted_data(const Baselines& baselines, std::int64_t nchan) {
  return {baselines, normal({nchan, baselines.nvis()}, torch::kComplexDouble, 5),
          uniform({nchan, baselines.nvis()}, torch::kFloat64, 6) + 0.5};
}

Tensor prediction_spread(at::IntArrayRef shape, double longest, std::uint64_t seed) {
  return (2 * uniform(shape, torch::kFloat64, seed) - 1) * longest;
}

}  // namespace

TEST_CASE("predicted visibilities are direct sums, for every kind of baselines and map of channels", "[losses][quick]") {
  const double longest = 0.8 * prediction_grid.max_uv(), hz = 230e9, metres = longest * 299792458.0 / hz * 0.9;
  const auto shared = Baselines::in_lambda(prediction_spread({70}, longest, 1), prediction_spread({70}, longest, 2));
  const auto own = Baselines::in_lambda(prediction_spread({3, 70}, longest, 1), prediction_spread({3, 70}, longest, 2));
  const auto in_metres = Baselines::in_metres(prediction_spread({70}, metres, 1), prediction_spread({70}, metres, 2),
                                              torch::tensor({hz, 1.02 * hz, 1.05 * hz}, torch::kFloat64));
  for (const auto& baselines : {shared, own, in_metres}) {
    const auto data = predicted_data(baselines, 3);
    const auto cube = random_image(prediction_grid, 3, torch::kFloat64, 7);
    const auto expected = direct_visibilities(cube, prediction_grid, baselines, 3);
    CHECK(relative_error(losses::predicted_visibilities(prediction_grid, cube, data, ChannelMap::cube(3)), expected) < 1e-8);
    const double chi_squared = ((data.data() - expected).abs().square() * data.weights()).sum().item<double>();
    CHECK(losses::loose_chi_squared(prediction_grid, cube, data, ChannelMap::cube(3)) == Approx(chi_squared).epsilon(1e-8));

    const auto image = cube.narrow(0, 1, 1);
    const auto of_one = direct_visibilities(image.expand({3, 24, 24}).contiguous(), prediction_grid, baselines, 3);
    CHECK(relative_error(losses::predicted_visibilities(prediction_grid, image, data, ChannelMap::continuum(3)), of_one) < 1e-8);
    const auto some = losses::predicted_visibilities(prediction_grid, image, data, ChannelMap{{{2}}});
    CHECK(relative_error(some[2], of_one[2]) < 1e-8);
    CHECK(some[0].abs().max().item<double>() == 0);
  }
}

TEST_CASE("predictions in several blocks are those in one", "[losses]") {
  const std::int64_t nvis = losses::prediction_block + 1000;
  const auto baselines = Baselines::in_lambda(prediction_spread({nvis}, 1e5, 1), prediction_spread({nvis}, 1e5, 2));
  const auto data = predicted_data(baselines, 2);
  const auto cube = random_image(prediction_grid, 2, torch::kFloat64, 7);
  const auto expected = Nufft(prediction_grid, baselines, 2, NufftOptions{1e-10})->forward(cube);
  CHECK(relative_error(losses::predicted_visibilities(prediction_grid, cube, data, ChannelMap::cube(2)), expected) < 1e-8);
}

TEST_CASE("predictions refuse images and channels that do not fit", "[losses][quick]") {
  const auto data = predicted_data(Baselines::in_lambda(prediction_spread({9}, 1e5, 1), prediction_spread({9}, 1e5, 2)), 1);
  const auto image = random_image(prediction_grid, 2, torch::kFloat64, 7);
  CHECK_THROWS_AS(losses::predicted_visibilities(prediction_grid, image, data, ChannelMap::cube(1)), ShapeError);
  CHECK_THROWS_AS(losses::predicted_visibilities(prediction_grid, image, data, ChannelMap::cube(2)), ValueError);
  CHECK_THROWS_AS(losses::predicted_visibilities(GridCoords(5, 24), image, data, ChannelMap{{{0}, {0}}}), DataError);
}
