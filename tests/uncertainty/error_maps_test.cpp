#include "catch.h"

#include <cmath>

#include <ATen/ops/maximum.h>
#include <ATen/ops/sort.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/images/restore.h>
#include <mpol_cpp/uncertainty/error_maps.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords map_grid(0.1, 32);

BootstrapSamples only(const Tensor& images) { return {images, {}}; }

}  // namespace

TEST_CASE("error maps are moments and percentiles of the samples' differences", "[uncertainty][quick]") {
  const auto sky = random_image(map_grid, 2, torch::kFloat64, 3);
  const auto bias = 0.3 * normal({2, 32, 32}, torch::kFloat64, 4);
  const auto samples = (sky + bias + 0.2 * normal({40, 2, 32, 32}, torch::kFloat64, 5)).to(torch::kFloat32);
  const auto maps = error_maps(sky, only(samples), map_grid, {});
  const auto exact = samples.to(torch::kFloat64);
  CHECK(relative_error(maps.image, sky) == 0);
  CHECK(relative_error(maps.mean, exact.mean(0)) < 1e-6);
  CHECK(relative_error(maps.spread, exact.std(0)) < 1e-6);
  CHECK(relative_error(maps.error, (exact - sky).square().mean(0).sqrt()) < 1e-6);
  CHECK(relative_error(maps.signal_to_noise(), sky / maps.error) < 1e-12);
  const auto sorted = std::get<0>(at::sort(exact - sky, 0));
  const auto between = [&](double place) {
    const auto first = static_cast<std::int64_t>(place);
    return sorted[first] + (place - static_cast<double>(first)) * (sorted[first + 1] - sorted[first]);
  };
  CHECK(relative_error(maps.lower - sky, between(39 * 0.158655)) < 1e-5);
  CHECK(relative_error(maps.upper - sky, between(39 * 0.841345)) < 1e-5);
  const auto flux = (exact - sky).sum({-2, -1}) * map_grid.cell_area();
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const auto place = static_cast<std::size_t>(channel);
    CHECK(maps.flux_bias[place] == Approx(flux.select(1, channel).mean().item<double>()).epsilon(1e-6));
    const auto size = sky[channel].abs();
    CHECK(maps.share_below_error[place] ==
          Approx((size * (size <= maps.error[channel])).sum().item<double>() / size.sum().item<double>()));
    CHECK(maps.flux_error[place] == Approx(std::sqrt(flux.select(1, channel).square().mean().item<double>())).epsilon(1e-6));
  }
}

TEST_CASE("error maps at a beam's resolution are those of restored samples", "[uncertainty][quick]") {
  const auto sky = random_image(map_grid, 2, torch::kFloat64, 3);
  const auto samples = (sky + 0.2 * normal({10, 2, 32, 32}, torch::kFloat64, 5)).to(torch::kFloat32);
  const std::vector<Beam> beams = {{0.5, 0.3, 0.4}, {0.4, 0.4, 0}};
  const auto maps = error_maps(sky, only(samples), map_grid, beams);
  const auto expected =
      error_maps(restore(sky, map_grid, beams), only(restore(samples.to(torch::kFloat64), map_grid, beams)), map_grid, {});
  CHECK(relative_error(maps.image, expected.image) < 1e-12);
  const std::vector<Beam> twice = {{1.0, 0.6, 0.4}, {0.8, 0.8, 0}};
  const auto around = GaussConvImage(map_grid, twice)->forward(expected.error.square());
  CHECK(relative_error(maps.error.square(), at::maximum(expected.error.square(), around)) < 1e-6);
  CHECK((maps.error > 1.01 * expected.error).sum().item<std::int64_t>() > 100);
  CHECK(relative_error(maps.mean, expected.mean) < 1e-6);
  CHECK(relative_error(maps.spread, expected.spread) < 1e-6);
  CHECK(relative_error(maps.lower, expected.lower) < 1e-6);
  CHECK(relative_error(maps.upper, expected.upper) < 1e-6);
  CHECK(relative_error(error_maps(sky, only(samples), map_grid, {beams[0]}).error[0], maps.error[0]) < 1e-12);
}

TEST_CASE("errors are larger by as much as samples differ more from the image than refits from samples", "[uncertainty][quick]") {
  const auto sky = 3 + random_image(map_grid, 2, torch::kFloat64, 3);
  const auto samples = sky + 0.3 * normal({40, 2, 32, 32}, torch::kFloat64, 5);
  const auto times = torch::tensor({1.5, 0.5}, torch::kFloat64).view({2, 1, 1});  // of which the second would make errors less
  const auto refits = samples.narrow(0, 0, 10) + 0.3 / times * normal({10, 2, 32, 32}, torch::kFloat64, 6);
  const std::vector<Beam> beam = GENERATE(std::vector<Beam>{}, std::vector<Beam>{{0.5, 0.3, 0.4}});
  const auto plain = error_maps(sky, only(samples), map_grid, beam),
             maps = error_maps(sky, {samples, refits, {}}, map_grid, beam);
  CHECK(plain.error_factor == std::vector<double>{1, 1});
  CHECK(maps.error_factor[0] == Approx(1.5).epsilon(0.05));
  CHECK(maps.error_factor[1] == 1);
  CHECK(relative_error(maps.error[0], maps.error_factor[0] * plain.error[0]) < 1e-12);
  CHECK(relative_error(maps.error[1], plain.error[1]) == 0);
  CHECK(relative_error(maps.spread, plain.spread) == 0);
  CHECK(error_maps(torch::zeros_like(sky), {samples - sky, refits - sky}, map_grid, beam).error_factor[1] == 1);
}

TEST_CASE("errors have what data still hold of the image's shape, and that of the flux what no baseline sees", "[uncertainty]") {
  const auto sky = 3 + random_image(map_grid, 2, torch::kFloat64, 3);
  const auto samples = sky + 0.3 * normal({40, 2, 32, 32}, torch::kFloat64, 5);
  const std::vector<Beam> beam = GENERATE(std::vector<Beam>{}, std::vector<Beam>{{0.5, 0.3, 0.4}});
  const double width = GENERATE(0.0, 0.8);
  const ImageGrowth growth{torch::tensor({0.0, 0.2}, torch::kFloat64), torch::tensor({0.0, width}, torch::kFloat64)};
  const auto seen = torch::tensor({0.75, 1.0}, torch::kFloat64);
  const auto plain = error_maps(sky, only(samples), map_grid, beam),
             maps = error_maps(sky, {samples, {}, growth, seen}, map_grid, beam);
  CHECK(relative_error(maps.error[0], plain.error[0]) == 0);
  const auto held = 0.2 * smoothed_to(sky.narrow(0, 1, 1), map_grid, width);
  const auto shown = beam.empty() ? held : restore(held, map_grid, beam);
  CHECK(relative_error(maps.error[1], (plain.error[1].square() + shown[0].square()).sqrt()) < 1e-12);
  const auto flux = (sky.sum({1, 2}) * map_grid.cell_area()).contiguous();
  CHECK(maps.flux_left[0] == 0);
  CHECK(maps.flux_left[1] == Approx(held.sum().item<double>() * map_grid.cell_area()));
  CHECK(maps.growth == std::vector<double>{0, 0.2});
  CHECK(maps.growth_width == std::vector<double>{0, width});
  CHECK(maps.flux_unseen[0] == Approx(flux[0].item<double>() / 16));
  CHECK(maps.flux_unseen[1] == 0);
  CHECK(plain.flux_unseen == std::vector<double>{0, 0});
  CHECK(maps.flux_error[0] == Approx(std::hypot(plain.flux_error[0], maps.flux_unseen[0])));
  CHECK(maps.flux_error[1] == Approx(std::hypot(plain.flux_error[1], maps.flux_left[1])));
  CHECK(relative_error(maps.spread, plain.spread) == 0);
  CHECK(maps.error_factor == plain.error_factor);
}

TEST_CASE("errors that are white noise seen through a beam are as wide as that asks for", "[uncertainty][quick]") {
  const GridCoords coords(0.1, 128);
  const auto sky = torch::zeros({1, 128, 128}, torch::kFloat64);
  const auto white = normal({20, 1, 128, 128}, torch::kFloat64, 8);
  GaussConvImage blur(coords, std::vector<Beam>{{0.8, 0.8, 0}});
  CHECK(error_maps(sky, only(blur->forward(white)), coords, {}).correlation_length[0] ==
        Approx(0.8 * std::sqrt(2)).epsilon(0.05));
  CHECK(error_maps(sky, only(white), coords, {}).correlation_length[0] < 0.12);
  CHECK(std::isnan(error_maps(sky, only(torch::zeros({2, 1, 128, 128})), coords, {}).correlation_length[0]));
}

TEST_CASE("errors of channels that are put together are those of the cube", "[uncertainty]") {
  const auto samples = torch::rand({6, 3, 32, 32}, torch::kFloat64), sky = torch::rand({3, 32, 32}, torch::kFloat64);
  const std::vector<Beam> beams(3, Beam{0.4, 0.3, 0.2});
  const auto which = GENERATE(MapsOfErrors::all, MapsOfErrors::of_error);
  auto whole = error_maps(sky, only(samples), map_grid, beams, which);
  ErrorMaps cube;
  for (const auto& [first, count] : {std::pair{2, 1}, std::pair{0, 2}}) {
    const auto own = only(samples.narrow(1, first, count));
    cube.put_channels(error_maps(sky.narrow(0, first, count), own, map_grid, {beams[0]}, which), first, 3);
  }
  std::vector<torch::Tensor> maps;
  whole.visit_maps([&](const char*, const torch::Tensor& map) { maps.push_back(map); });
  std::size_t number = 0;
  cube.visit_maps([&](const char* name, const torch::Tensor& map) {
    INFO(name);
    const auto& wanted = maps[number++];
    REQUIRE(map.defined() == wanted.defined());
    if (wanted.defined()) CHECK(relative_error(map, wanted) < 1e-12);
  });
  CHECK(whole.error.defined());
  CHECK(whole.mean.defined() == (which == MapsOfErrors::all));
  std::vector<std::vector<double>> numbers;
  whole.visit_numbers([&](const std::vector<double>& own) { numbers.push_back(own); });
  number = 0;
  cube.visit_numbers([&](const std::vector<double>& own) {
    const auto& wanted = numbers[number++];
    REQUIRE(own.size() == 3);
    for (std::size_t channel = 0; channel < 3; ++channel) CHECK(own[channel] == Approx(wanted[channel]).epsilon(1e-12));
  });
}

TEST_CASE("error maps refuse samples that do not belong to the image", "[uncertainty][quick]") {
  const auto sky = random_image(map_grid, 2, torch::kFloat64, 3);
  CHECK_THROWS_AS(error_maps(sky, only(torch::zeros({5, 1, 32, 32})), map_grid, {}), ShapeError);
  CHECK_THROWS_AS(error_maps(sky, only(torch::zeros({2, 32, 32})), map_grid, {}), ShapeError);
  CHECK_THROWS_AS(error_maps(sky, only(torch::zeros({1, 2, 32, 32})), map_grid, {}), ValueError);
  CHECK_THROWS_AS(error_maps(sky, {torch::zeros({2, 2, 32, 32}), torch::zeros({3, 2, 32, 32}), {}}, map_grid, {}), ShapeError);
}
