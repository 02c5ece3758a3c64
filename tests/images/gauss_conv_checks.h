#pragma once

// What tests of both Gaussian convolutions compare; catch.h comes first.
#include <cstddef>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/beam.h>

#include "catch.h"
#include "compare.h"
#include "golden.h"
#include "random.h"

namespace mpol::testing {

/// The beam of the reference data "images_gauss".
inline Beam golden_beam(const Golden& golden) {
  return {.major = golden.number("in_fwhm_maj"),
          .minor = golden.number("in_fwhm_min"),
          .position_angle = golden.number("in_omega_deg") * units::degree};
}

/// Checks that every channel is convolved with its own beam, whatever the leading dimensions. @tparam Convolution  a holder
template <typename Convolution>
void check_beams_of_channels(double bound) {
  const GridCoords coords(0.05, 32);
  const std::vector<Beam> beams{{.major = 0.5, .minor = 0.3, .position_angle = 10 * units::degree},
                                {.major = 0.2, .minor = 0.15, .position_angle = 70 * units::degree}};
  const auto sky = random_image(coords, 2, torch::kFloat64, 3);
  const auto both = Convolution(coords, beams)->forward(sky);
  for (std::size_t i = 0; i < beams.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i);
    CHECK(relative_error(both.narrow(0, channel, 1), Convolution(coords, beams[i])->forward(sky.narrow(0, channel, 1))) < bound);
  }
  CHECK(relative_error(Convolution(coords, beams)->forward(torch::stack({sky, 2 * sky}))[1], 2 * both) < bound);
  CHECK_THROWS_AS(Convolution(coords, beams)->forward(torch::zeros({3, 32, 32})), ShapeError);
  CHECK_THROWS_AS(Convolution(coords, Beam{.major = 0.2, .minor = 0.3, .position_angle = 0}), ValueError);
}

}  // namespace mpol::testing
