#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/simulation/simulate.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

SimulationOptions short_observation() {
  return SimulationOptions()
      .tracks(TrackOptions().integration_time(1800).hour_angle_start(-0.3).hour_angle_end(0.3))
      .frequencies({225e9, 235e9});
}

ArrayConfiguration small_array() { return alma_like_array(400, 12); }

}  // namespace

TEST_CASE("noise follows the radiometer equation", "[visibilities][quick]") {
  const auto elevations = torch::tensor({90.0, 30.0}, torch::kFloat64) * units::degree;
  const auto options = ReceiverOptions()
                           .system_temperature(80)
                           .antenna_efficiency(0.7)
                           .correlator_efficiency(0.88)
                           .channel_width(2e9)
                           .polarizations(2)
                           .zenith_opacity(0.1);
  const auto sigma = thermal_noise_sigma(elevations, 12, 300, options);
  // 2 k T / (0.7 x 113.1 m^2) = 2790 Jy; times 1 / (0.88 sqrt(2 x 2e9 x 300 x 2)).
  CHECK(sigma[0].item<double>() == Approx(2.0465e-3).epsilon(1e-3));
  CHECK(sigma[1].item<double>() == Approx(sigma[0].item<double>() * std::exp(0.1)).epsilon(1e-12));
  const auto single = thermal_noise_sigma(elevations, 12, 300, ReceiverOptions(options).polarizations(1));
  CHECK((single[0] / sigma[0]).item<double>() == Approx(std::sqrt(2.0)));
  const auto larger = thermal_noise_sigma(elevations, 24, 1200, options);
  CHECK((sigma[0] / larger[0]).item<double>() == Approx(8.0));
}

TEST_CASE("standard noise is normal, independent and repeatable", "[visibilities][quick]") {
  const std::int64_t count = 200000;
  const auto noise = standard_complex_noise(count, 7);
  const auto parts = torch::view_as_real(noise);
  const double error = 1 / std::sqrt(static_cast<double>(count));
  for (int part = 0; part < 2; ++part) {
    const auto values = parts.select(1, part);
    CHECK(std::abs(values.mean().item<double>()) < 4 * error);
    CHECK(std::abs(values.square().mean().item<double>() - 1) < 4 * std::sqrt(2.0) * error);
    CHECK(std::abs(values.pow(4).mean().item<double>() - 3) < 4 * std::sqrt(96.0) * error);
    CHECK(std::abs((values.narrow(0, 1, count - 1) * values.narrow(0, 0, count - 1)).mean().item<double>()) < 4 * error);
  }
  CHECK(std::abs((parts.select(1, 0) * parts.select(1, 1)).mean().item<double>()) < 4 * error);
  CHECK(noise.equal(standard_complex_noise(count, 7)));
  CHECK_FALSE(noise.equal(standard_complex_noise(count, 8)));
  // The generator is fixed by the C++ standard: these values hold everywhere.
  CHECK(standard_complex_noise(1, 7).equal(noise.narrow(0, 0, 1)));
}

TEST_CASE("an observation is the sky plus noise that its weights describe", "[visibilities][quick]") {
  const RingedDisc disc;
  const auto options = short_observation();
  const auto noisy = simulate_observation(small_array(), disc, SimulationOptions(options).seed(3));
  const auto clean = simulate_observation(small_array(), disc, SimulationOptions(options).noise(SimulatedNoise::none));
  CHECK(noisy.nchan() == 2);
  CHECK(noisy.nvis() % 66 == 0);
  CHECK(noisy.data().scalar_type() == torch::kComplexFloat);
  CHECK(noisy.weights().scalar_type() == torch::kFloat32);
  CHECK(noisy.weights().equal(clean.weights()));

  const auto noise = torch::view_as_real((noisy.data() - clean.data()).to(torch::kComplexDouble));
  const auto normalized = noise.square() * noisy.weights().to(torch::kFloat64).unsqueeze(-1);
  const auto count = static_cast<double>(normalized.numel());
  CHECK(std::abs(normalized.mean().item<double>() - 1) < 3 * std::sqrt(2 / count));

  const auto tracks = uv_tracks(small_array(), options.tracks());
  const auto sigma = thermal_noise_sigma(tracks.elevation, 12, 1800, options.receiver());
  CHECK(relative_error(noisy.weights()[1], sigma.pow(-2)) < 1e-6);
}

TEST_CASE("the sky is seen at u, v as they are stored", "[visibilities][quick]") {
  const RingedDisc disc;
  const auto observed =
      simulate_observation(small_array(), disc, short_observation().noise(SimulatedNoise::none).dtype(torch::kFloat64));
  const auto& baselines = observed.baselines();
  const auto grid = sampling_grid(disc, 2 * std::max(baselines.max_abs_u(), baselines.max_abs_v()));
  const auto expected = direct_visibilities(render(disc, grid, {225e9, 235e9}, 1), grid, baselines, 2);
  CHECK(relative_error(observed.data(), expected) < 1e-8);
  CHECK(baselines.u().scalar_type() == torch::kFloat64);
  CHECK(observed.frequencies()[1].item<double>() == 235e9);
}

TEST_CASE("short baselines see the total flux", "[visibilities][quick]") {
  RingedDisc disc;
  disc.offset_east = 0.1;
  const auto observed = simulate_observation(alma_like_array(5), disc, short_observation().noise(SimulatedNoise::none));
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const double flux = disc.flux_at(observed.frequencies()[channel].item<double>());
    const auto amplitude = observed.data()[channel].abs();
    CHECK(amplitude.min().item<double>() == Approx(flux).epsilon(2e-3));
    CHECK(amplitude.max().item<double>() == Approx(flux).epsilon(1e-5));
  }
}

TEST_CASE("a disc and its rendered image look alike", "[visibilities]") {
  const RingedDisc disc;
  const GridCoords coords(0.02, 256);
  const auto options = short_observation().noise(SimulatedNoise::none);
  const auto of_disc = simulate_observation(small_array(), disc, options);
  const auto of_image = simulate_observation(small_array(), render(disc, coords, options.frequencies()), coords, options);
  CHECK(relative_error(of_image.data(), of_disc.data()) < 2e-3);
  const auto of_plane = simulate_observation(small_array(), render(disc, coords, {225e9})[0], coords, options);
  CHECK(relative_error(of_plane.data()[0], of_image.data()[0]) < 1e-6);
}

TEST_CASE("a simulation repeats itself, and changes with the seed", "[visibilities][quick]") {
  const RingedDisc disc;
  const auto once = simulate_observation(small_array(), disc, short_observation().seed(1));
  const auto again = simulate_observation(small_array(), disc, short_observation().seed(1));
  const auto other = simulate_observation(small_array(), disc, short_observation().seed(2));
  CHECK(once.data().equal(again.data()));
  CHECK_FALSE(once.data().equal(other.data()));
}

TEST_CASE("an observation says where it looked", "[visibilities][quick]") {
  auto options = short_observation().right_ascension(1.5);
  options.tracks().declination(-0.7);
  const auto observed = simulate_observation(small_array(), RingedDisc(), options);
  CHECK(observed.observation().right_ascension.value() == 1.5);
  CHECK(observed.observation().declination.value() == -0.7);
  CHECK(observed.observation().telescope == "ALMA-like");
}

TEST_CASE("simulations without meaning are refused", "[visibilities][quick]") {
  const auto refuses = [](const SimulationOptions& options) {
    CHECK_THROWS_AS(simulate_observation(small_array(), RingedDisc(), options), ValueError);
  };
  refuses(short_observation().frequencies({}));
  refuses(short_observation().frequencies({-1}));
  refuses(short_observation().frequencies({NAN}));
  refuses(short_observation().dtype(torch::kInt64));
  refuses(short_observation().receiver(ReceiverOptions().system_temperature(0)));
  refuses(short_observation().receiver(ReceiverOptions().antenna_efficiency(1.2)));
  refuses(short_observation().receiver(ReceiverOptions().correlator_efficiency(0)));
  refuses(short_observation().receiver(ReceiverOptions().channel_width(-2e9)));
  refuses(short_observation().receiver(ReceiverOptions().polarizations(3)));
  refuses(short_observation().receiver(ReceiverOptions().zenith_opacity(-1)));
  const GridCoords coords(0.05, 32);
  const auto image = random_image(coords, 1, torch::kFloat64, 1);
  CHECK_THROWS_AS(simulate_observation(small_array(), image.narrow(1, 0, 30), coords, short_observation()), ShapeError);
  CHECK_THROWS_AS(simulate_observation(small_array(), image * NAN, coords, short_observation()), DataError);
}
