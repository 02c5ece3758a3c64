#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/phase_center.h>

using namespace mpol;

namespace {

Observation centre(std::optional<double> right_ascension, std::optional<double> declination) {
  Observation observation;
  if (right_ascension) observation.right_ascension = *right_ascension * units::degree;
  if (declination) observation.declination = *declination * units::degree;
  return observation;
}

}  // namespace

TEST_CASE("phase centres are compared by what both know of them", "[visibilities][quick]") {
  const auto distance = [](const Observation& a, const Observation& b) {
    return phase_centre_distance(a, b).value() / units::degree;
  };
  CHECK(distance(centre(10, -30), centre(10, 40)) == Approx(70));
  CHECK(distance(centre(359.5, 60), centre(0.5, 60)) == Approx(0.5).epsilon(1e-4));
  CHECK(distance(centre(0, 0), centre(180, 0)) == Approx(180));
  CHECK(distance(centre(200, -42), centre(-160, -42)) == Approx(0).margin(1e-12));
  CHECK(distance(centre(10, -30), centre(10 + 1e-7, -30)) == Approx(1e-7 * std::cos(30 * units::degree)).epsilon(1e-6));
  CHECK(distance(centre(std::nullopt, -30), centre(10, -29)) == Approx(1));
  CHECK_FALSE(phase_centre_distance(centre(10, std::nullopt), centre(20, -29)).has_value());
  CHECK_FALSE(phase_centre_distance(centre(std::nullopt, std::nullopt), centre(20, -29)).has_value());
}

TEST_CASE("what is unknown of a phase centre is called so", "[visibilities][quick]") {
  CHECK(phase_centre_text(centre(180.25, -30)) == "RA 180.25, Dec -30 degrees");
  CHECK(phase_centre_text(centre(std::nullopt, -30)) == "RA unknown, Dec -30 degrees");
}
