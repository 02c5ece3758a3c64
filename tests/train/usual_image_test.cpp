#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/polar.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/train/usual_image.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords usual_grid(0.05, 32);

/// A Gaussian source of 1 Jy in each channel, away from the phase centre, with noise of the weights.
Visibilities source_off_center(double noise, torch::Dtype dtype) {
  const auto random = random_visibilities(usual_grid, 2, 5);
  const auto& uv = random.baselines();
  std::vector<Tensor> rows;
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const auto [u, v] = uv.channel(channel);
    const auto envelope = at::exp((u.square() + v.square()) * (-12 / std::pow(uv.max_abs_u(), 2)));
    rows.push_back(at::polar(envelope, -2 * units::pi * units::arcsec * (0.4 * u - 0.2 * v)));
  }
  const auto weights = torch::full_like(random.weights(), 1 / (noise * noise));
  const auto data = at::stack(rows) + noise * std::sqrt(2.0) * normal({2, random.nvis()}, torch::kComplexDouble, 8);
  return {uv, data.to(dtype), weights};
}

}  // namespace

TEST_CASE("the usual image fits the data to their noise and finds the flux", "[train][quick]") {
  const auto visibilities = source_off_center(0.002, torch::kComplexDouble);
  const auto channels = ChannelMap::cube(2);
  const auto sky = usual_image(usual_grid, visibilities, channels);
  REQUIRE(sky.sizes() == std::vector<std::int64_t>{2, 32, 32});
  CHECK(sky.scalar_type() == torch::kFloat64);
  const auto flux = sky.sum({-2, -1}) * usual_grid.cell_area();
  CHECK(relative_error(flux, torch::ones({2}, torch::kFloat64)) < 0.03);
  const auto residual = losses::residual_visibilities(usual_grid, sky, visibilities, channels);
  const auto chi_squared = (residual.weights() * residual.data().abs().square()).sum().item<double>();
  CHECK(chi_squared / (2 * 2 * 800) == Approx(1).margin(0.15));
  const auto stronger = usual_image(usual_grid, visibilities, channels, UsualImageOptions().sparsity(30).tv(30));
  CHECK((stronger.sum() < sky.sum()).item<bool>());
}

TEST_CASE("the usual image hardly depends on the scale of the weights, unlike one whose lambda believe them", "[train]") {
  const auto visibilities = source_off_center(0.2, torch::kComplexDouble);
  const auto channels = ChannelMap::cube(2);
  const auto sky = usual_image(usual_grid, visibilities, channels);
  const double scale = GENERATE(0.25, 4.0);
  const Visibilities scaled(visibilities.baselines(), visibilities.data(), scale * visibilities.weights());
  const double apart = relative_error(usual_image(usual_grid, scaled, channels), sky);
  const auto given = UsualImageOptions().sparsity(0.5).tv(0.5).tv_slope(0.5);
  const double believed =
      relative_error(usual_image(usual_grid, scaled, channels, given), usual_image(usual_grid, visibilities, channels, given));
  CAPTURE(scale, apart, believed);
  CHECK(believed > 0.1);
  CHECK(apart < 0.4 * believed);
}

TEST_CASE("the usual image of a faint point in a wide field has its flux, and one of negative data is empty", "[train]") {
  const GridCoords wide(0.025, 160);
  const auto random = random_visibilities(usual_grid, 1, 5);
  const auto [u, v] = random.baselines().channel(0);
  const double sigma = 0.1, flux = 20 * sigma / std::sqrt(static_cast<double>(random.nvis()));
  const auto phase = -2 * units::pi * units::arcsec * (0.4 * u - 0.2 * v);
  const auto point = at::polar(torch::full_like(phase, flux), phase).unsqueeze(0);
  const auto noise = sigma * std::sqrt(2.0) * normal({1, random.nvis()}, torch::kComplexDouble, 8);
  const auto weights = torch::full_like(random.weights(), 1 / (sigma * sigma));
  const auto flux_of = [&](const Tensor& data, const UsualImageOptions& options = {}) {
    const auto sky = usual_image(wide, {random.baselines(), data, weights}, ChannelMap::cube(1), options);
    return (sky.sum() * wide.cell_area()).item<double>();
  };
  const double found = flux_of(point + noise);
  CHECK(found == Approx(flux).epsilon(0.35));
  CHECK(flux_of(point + noise, UsualImageOptions().sparsity(0.58).tv(0.7).tv_slope(1.1)) > 1.1 * found);
  CHECK(flux_of(noise - 10 * point) < 0.02 * flux);
}

TEST_CASE("the usual image of Stokes Q is negative where the data are", "[train][quick]") {
  auto visibilities = source_off_center(0.002, torch::kComplexDouble);
  const auto channels = ChannelMap::cube(2);
  const auto sky = usual_image(usual_grid, visibilities, channels, UsualImageOptions().sign(PixelSign::either));
  auto observation = visibilities.observation();
  observation.stokes = Stokes::q;
  Visibilities turned(visibilities.baselines(), -visibilities.data(), visibilities.weights());
  turned.set_observation(observation);
  CHECK(relative_error(usual_image(usual_grid, turned, channels), -sky) < 1e-5);
  const auto flux = sky.sum({-2, -1}) * usual_grid.cell_area();
  CHECK(relative_error(flux, torch::ones({2}, torch::kFloat64)) < 0.03);
}

TEMPLATE_TEST_CASE("residual visibilities are data minus model, in the dtype of the data", "[train][quick]", float, double) {
  auto visibilities = source_off_center(0.02, complex_dtype_of<TestType>());
  visibilities.set_frequencies(torch::tensor({2e11, 2.1e11}, torch::kFloat64));
  const auto sky = random_image(usual_grid, 1, torch::kFloat64, 4);
  const auto continuum = ChannelMap::continuum(2);
  const auto residual = losses::residual_visibilities(usual_grid, sky, visibilities, continuum);
  CHECK(residual.data().scalar_type() == visibilities.data().scalar_type());
  CHECK(torch::equal(residual.weights(), visibilities.weights()));
  CHECK(torch::equal(residual.frequencies(), visibilities.frequencies()));
  const auto expected = visibilities.data() - losses::predicted_visibilities(usual_grid, sky, visibilities, continuum);
  CHECK(relative_error(residual.data(), expected) < tolerance<TestType>(1e-12, 1e-6));
  CHECK(losses::loose_chi_squared(usual_grid, sky, visibilities, continuum) ==
        Approx((residual.weights() * residual.data().abs().square()).sum().template item<double>()).epsilon(1e-5));
}

TEST_CASE("in the usual image of a line each channel is nearly as it would be alone", "[train]") {
  const auto random = random_visibilities(usual_grid, 3, 5);
  const auto& uv = random.baselines();
  constexpr double noise = 0.2;
  std::vector<Tensor> rows;
  for (std::int64_t channel = 0; channel < 3; ++channel) {  // faint, bright, dark
    const auto [u, v] = uv.channel(channel);
    const auto envelope = at::exp((u.square() + v.square()) * (-12 / std::pow(uv.max_abs_u(), 2)));
    const double flux = channel == 1 ? 8 : channel == 0 ? 1 : 0;
    rows.push_back(at::polar(flux * envelope, -2 * units::pi * units::arcsec * (0.4 * u - 0.2 * v)));
  }
  const auto data = at::stack(rows) + noise * std::sqrt(2.0) * normal({3, random.nvis()}, torch::kComplexDouble, 8);
  const Visibilities line(uv, data, torch::full_like(random.weights(), 1 / (noise * noise)));
  const auto sky = usual_image(usual_grid, line, ChannelMap::cube(3));
  const auto one = usual_image(usual_grid, line, ChannelMap::cube(3), UsualImageOptions().sparsity(1).tv(0.3).tv_slope(0.5));
  const double largest = sky[1].abs().max().item<double>();
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const auto alone = usual_image(usual_grid, line.select_channels({channel}), ChannelMap::cube(1))[0];
    const auto apart = [&](const Tensor& other) { return (other - alone).abs().max().item<double>() / largest; };
    CAPTURE(channel);
    CHECK(apart(sky[channel]) < 0.01);
    if (channel == 0) CHECK(apart(sky[channel]) < 0.5 * apart(one[channel]));
  }
}
