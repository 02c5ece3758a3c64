#include "catch.h"

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/images/gaussian_kernel.h>

#include "golden.h"

using namespace mpol;

TEST_CASE("brightness temperatures in Jy/arcsec^2 are MPoL's", "[images][quick]") {
  const Golden golden("utils");
  for (std::int64_t i = 0; i < golden("in_temperature_K").size(0); ++i) {
    const double brightness =
        golden("in_temperature_K")[i].item<double>() * jy_per_arcsec2_per_kelvin(golden("in_frequency_Hz")[i].item<double>());
    CHECK(brightness == Approx(golden("out_Jy_arcsec2")[i].item<double>()).epsilon(1e-13));
  }
  CHECK_THROWS_AS(jy_per_arcsec2_per_kelvin(0), ValueError);
}

TEST_CASE("a beam's area is the sum of its samples over its peak", "[images][quick]") {
  const Beam beam{.major = 0.31, .minor = 0.17, .position_angle = 25 * units::degree};
  const double cell = 0.02;
  const auto kernel = gaussian_kernel(beam, cell, 7);
  CHECK(beam_area(beam) == Approx(cell * cell / kernel.max().item<double>()).epsilon(1e-9));
}
