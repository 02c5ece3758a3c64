#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/phase_center.h>

using namespace mpol;

namespace {

Observation center(std::optional<double> right_ascension, std::optional<double> declination) {
  Observation observation;
  if (right_ascension) observation.right_ascension = *right_ascension * units::degree;
  if (declination) observation.declination = *declination * units::degree;
  return observation;
}

}  // namespace

TEST_CASE("phase centres are compared by what both know of them", "[visibilities][quick]") {
  const auto distance = [](const Observation& a, const Observation& b) {
    return phase_center_distance(a, b).value() / units::degree;
  };
  CHECK(distance(center(10, -30), center(10, 40)) == Approx(70));
  CHECK(distance(center(359.5, 60), center(0.5, 60)) == Approx(0.5).epsilon(1e-4));
  CHECK(distance(center(0, 0), center(180, 0)) == Approx(180));
  CHECK(distance(center(200, -42), center(-160, -42)) == Approx(0).margin(1e-12));
  CHECK(distance(center(10, -30), center(10 + 1e-7, -30)) == Approx(1e-7 * std::cos(30 * units::degree)).epsilon(1e-6));
  CHECK(distance(center(std::nullopt, -30), center(10, -29)) == Approx(1));
  CHECK_FALSE(phase_center_distance(center(10, std::nullopt), center(20, -29)).has_value());
  CHECK_FALSE(phase_center_distance(center(std::nullopt, std::nullopt), center(20, -29)).has_value());
}

TEST_CASE("what is unknown of a phase centre is called so", "[visibilities][quick]") {
  CHECK(phase_center_text(center(180.25, -30)) == "RA 180.25, Dec -30 degrees");
  CHECK(phase_center_text(center(std::nullopt, -30)) == "RA unknown, Dec -30 degrees");
}

TEST_CASE("places in words have digits enough for what is small", "[visibilities][quick]") {
  CHECK(offset_text({.east = 1.5, .north = -0.2}) == "1.50\" East and 0.20\" South");
  CHECK(offset_text({.east = -0.05, .north = 0.004}) == "0.050\" West and 0.004\" North");
  CHECK(offset_text({.east = 4e-6, .north = -2e-5}) == "0.000004\" East and 0.000020\" South");
  CHECK(offset_text({}) == "0.00\" East and 0.00\" North");
}
