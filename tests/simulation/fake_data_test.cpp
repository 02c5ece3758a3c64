#include "catch.h"

#include <mpol_cpp/simulation/fake_data.h>
#include <mpol_cpp/simulation/sky_gaussian.h>
#include <mpol_cpp/core/error.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

Baselines random_baselines(const GridCoords& coords, std::int64_t nvis) {
  const auto draw = [&](std::uint64_t seed) { return (uniform({nvis}, torch::kFloat64, seed) - 0.5) * 1.5 * coords.max_uv(); };
  return Baselines::in_lambda(draw(1), draw(2));
}

}  // namespace

TEST_CASE("fake data without noise are the visibilities of the source", "[analysis][quick]") {
  const GridCoords coords(0.05, 96);
  const SkyGaussian gaussian{
      .peak = 2, .offset_east = 0.2, .offset_north = 0.4, .sigma_minor = 0.2, .sigma_major = 0.3, .position_angle = 0.5};
  const auto baselines = random_baselines(coords, 200);
  const auto sky = gaussian.brightness(coords.sky_x(), coords.sky_y()).unsqueeze(0);
  const auto data = fake_data(sky, coords, baselines, torch::full({2, 200}, 1e30, torch::kFloat64));
  const auto [u, v] = baselines.channel(0);
  CHECK(relative_error(data.data()[0], gaussian.visibility(u, v)) < 1e-10);
  CHECK(relative_error(data.data()[1], gaussian.visibility(u, v)) < 1e-10);
}

TEMPLATE_TEST_CASE("the noise of fake data is what their weights promise", "[analysis][quick]", float, double) {
  const GridCoords coords(0.05, 8);
  const std::int64_t nvis = 20000;
  const auto weights = 10.0 * (0.1 + uniform({2, nvis}, dtype_of<TestType>(), 3));
  const auto data = fake_data(torch::zeros({1, 8, 8}, torch::kFloat64), coords, random_baselines(coords, nvis), weights, 11);
  CHECK(data.data().scalar_type() == complex_dtype_of<TestType>());
  const Tensor pulls = at::view_as_real(data.data().to(torch::kComplexDouble) * weights.sqrt().to(torch::kFloat64));
  CHECK(pulls.select(2, 0).std().template item<double>() == Approx(1).epsilon(0.02));
  CHECK(pulls.select(2, 1).std().template item<double>() == Approx(1).epsilon(0.02));
  CHECK(std::abs(pulls.mean().template item<double>()) < 0.02);
  CHECK(std::abs((pulls.select(2, 0) * pulls.select(2, 1)).mean().template item<double>()) < 0.03);
}

TEST_CASE("noise depends on the seed and keeps all but the data", "[analysis][quick]") {
  const GridCoords coords(0.05, 8);
  Visibilities clean(random_baselines(coords, 50), torch::ones({50}, torch::kComplexFloat), torch::ones({50}));
  clean.set_frequencies(torch::full({1}, 230e9, torch::kFloat64));
  clean.set_observation({.right_ascension = 1.0,
                         .declination = 0.5,
                         .object = "disc",
                         .telescope = {},
                         .date = {},
                         .rest_frequency = {},
                         .spectral_reference = {}});
  const auto noisy = add_noise(clean, 1);
  CHECK(torch::equal(noisy.data(), add_noise(clean, 1).data()));
  CHECK_FALSE(torch::equal(noisy.data(), add_noise(clean, 2).data()));
  CHECK(noisy.observation().object == "disc");
  CHECK(torch::equal(noisy.frequencies(), clean.frequencies()));
  CHECK_THROWS_AS(fake_data(torch::zeros({1, 8, 8}), coords, random_baselines(coords, 5), torch::ones({5})), ShapeError);
  CHECK_THROWS_AS(fake_data(torch::zeros({1, 8, 8}), coords, random_baselines(coords, 5), torch::zeros({1, 5})), DataError);
}
