#include "catch.h"

#include <cmath>

#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/primary_beam.h>

#include "compare.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double frequency = 230e9;

double power_at(const PrimaryBeam& beam, double distance, double at = frequency) {
  return beam.power(at::tensor(distance, torch::kFloat64), at).item<double>();
}

/// Power of a round dish, lit evenly but for its middle, from the integral over its aperture: the transform of rings of
/// antenna, whose J0 is an average of cosines.
double power_by_integral(double diameter, double blocked, double distance) {
  const double wavelength = units::speed_of_light / frequency, sine = std::sin(distance * units::arcsec);
  const auto radii = at::linspace(0.5 * blocked, 0.5 * diameter, 4001, torch::kFloat64);
  const auto angles = (at::arange(400, torch::kFloat64) + 0.5) * (units::pi / 400);
  const auto phase = 2 * units::pi / wavelength * sine * radii.unsqueeze(1) * angles.cos().unsqueeze(0);
  const auto rings = phase.cos().mean(1) * radii;
  return std::pow((at::trapezoid(rings, radii) / at::trapezoid(radii, radii)).item<double>(), 2);
}

}  // namespace

TEST_CASE("the pattern of a dish is the transform of its aperture", "[images][quick]") {
  const double blocked = GENERATE(0.0, 0.75, 3.0);
  const auto beam = PrimaryBeam::airy(10.7, blocked);
  for (const double distance : {0.0, 0.001, 3.0, 12.0, 25.0, 40.0, 90.0})
    CHECK(power_at(beam, distance) == Approx(power_by_integral(10.7, blocked, distance)).margin(1e-6));
}

TEST_CASE("known telescopes have the beams that their observatories give", "[images][quick]") {
  const auto fwhm = [](const std::string& telescope, double at, double shortest = 0) {
    return PrimaryBeam::of_telescope(telescope, shortest)->fwhm(at);
  };
  const auto by_handbook = [](double diameter) { return 1.13 * units::speed_of_light / 300e9 / diameter / units::arcsec; };
  CHECK(fwhm("ALMA", 300e9) == Approx(by_handbook(12)).epsilon(0.02));  // CASA's dish, 19.8", beside 19.4" of ALMA's handbook
  CHECK(fwhm("ALMA", 300e9, 9) == Approx(by_handbook(7)).epsilon(0.02));
  CHECK(fwhm("alma", 300e9, 15) == fwhm("ALMA", 300e9));
  CHECK(fwhm("VLA", 1e9) == Approx(42 * 60).epsilon(0.01));
  CHECK(fwhm("NOEMA", 100e9) == Approx(50).epsilon(0.01));
  CHECK(fwhm("MeerKAT", 1.5e9) == Approx(57.5 * 60).epsilon(0.01));
  CHECK_FALSE(PrimaryBeam::of_telescope("CARMA"));
  CHECK_FALSE(PrimaryBeam::of_telescope(""));
  CHECK(PrimaryBeam::of_telescope("ALMA", 9)->words() == "7 m antennas of ALMA");
  CHECK(PrimaryBeam::of_antennas(7, "ALMA").fwhm(300e9) == fwhm("ALMA", 300e9, 9));
  CHECK(PrimaryBeam::of_antennas(20, "ALMA").fwhm(frequency) ==
        Approx(1.13 * units::speed_of_light / frequency / 20 / units::arcsec));
}

TEST_CASE("a beam is 1 in its middle, falls, and is as wide as the wavelength is long", "[images][quick]") {
  const auto beam = GENERATE(PrimaryBeam::airy(10.7, 0.75), PrimaryBeam::airy(25), PrimaryBeam::gaussian(25, 230e9));
  CHECK(power_at(beam, 0) == 1);
  for (const double power : {0.99, 0.5, 0.1, 0.02}) CHECK(power_at(beam, beam.radius(power, frequency)) == Approx(power));
  CHECK(beam.fwhm(frequency / 2) == Approx(2 * beam.fwhm(frequency)).epsilon(1e-6));
  const auto inner = at::linspace(0, beam.radius(0.05, frequency), 200, torch::kFloat64);
  CHECK((beam.power(inner, frequency).diff() < 0).all().item<bool>());
  CHECK(relative_error(beam.power(inner.to(torch::kFloat32), frequency), beam.power(inner, frequency)) < 1e-5);
}

TEST_CASE("a Gaussian beam has its width", "[images][quick]") {
  const auto beam = PrimaryBeam::gaussian(17, 345e9);
  CHECK(beam.fwhm(345e9) == Approx(17));
  CHECK(power_at(beam, 17, 345e9) == Approx(1.0 / 16));
}

TEST_CASE("a beam on a grid is where the antennas point", "[images][quick]") {
  const GridCoords coords(0.5, 64);
  const auto beam = PrimaryBeam::airy(12);
  const auto power = beam.power(coords, {.east = 3, .north = -4}, frequency);
  const auto peak = power.argmax().item<std::int64_t>();
  CHECK(peak / 64 == 32 - 8);
  CHECK(peak % 64 == 31 - 6);
  CHECK(power[32][31].item<double>() == Approx(power_at(beam, 5)).epsilon(1e-8));
}

TEST_CASE("beams that are none are refused", "[images][quick]") {
  CHECK_THROWS_AS(PrimaryBeam::airy(0), ValueError);
  CHECK_THROWS_AS(PrimaryBeam::airy(10, 10), ValueError);
  CHECK_THROWS_AS(PrimaryBeam::gaussian(17, 0), ValueError);
  CHECK_THROWS_AS(PrimaryBeam::gaussian(std::nan(""), 1e9), ValueError);
  CHECK_THROWS_AS(PrimaryBeam::of_antennas(-1), ValueError);
  CHECK_THROWS_AS(PrimaryBeam::airy(12).radius(1, frequency), ValueError);
  CHECK_THROWS_AS(PrimaryBeam::airy(12).radius(1e-3, frequency), ValueError);
  CHECK_THROWS_AS(power_at(PrimaryBeam::airy(12), 1, 0), ValueError);
}
