#include "catch.h"

#include <mpol_cpp/simulation/sky_gaussian.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/fourier_cube.h>

#include "compare.h"
#include "golden.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

SkyGaussian golden_gaussian(const Golden& golden) {
  const auto& values = golden("in_gauss_a_dx_dy_sx_sy_omega");
  const auto value = [&](std::int64_t i) { return values[i].item<double>(); };
  return {.peak = value(0),
          .offset_east = value(1),
          .offset_north = value(2),
          .sigma_minor = value(3),
          .sigma_major = value(4),
          .position_angle = value(5) * units::degree};
}

}  // namespace

TEMPLATE_TEST_CASE("Gaussians on the sky and in the Fourier plane equal MPoL's", "[analysis][quick]", float, double) {
  const Golden golden("utils");
  const auto gaussian = golden_gaussian(golden);
  const auto rounded = [&](const char* name) { return golden(name).to(dtype_of<TestType>()); };
  const double near = tolerance<TestType>(1e-13, 1e-5);
  CHECK(relative_error(gaussian.brightness(rounded("in_x"), rounded("in_y")), golden("out_sky_gaussian")) < near);
  CHECK(relative_error(gaussian.visibility(rounded("in_u"), rounded("in_v")), golden("out_fourier_gaussian")) < near);
}

TEST_CASE("the visibilities of a Gaussian are the transform of its brightness", "[analysis][quick]") {
  const GridCoords coords(0.05, 128);
  const double peak = GENERATE(1.5, -0.8);
  const SkyGaussian gaussian{
      .peak = peak, .offset_east = 0.3, .offset_north = -0.4, .sigma_minor = 0.2, .sigma_major = 0.35, .position_angle = 0.6};
  const auto sky = gaussian.brightness(coords.sky_x(), coords.sky_y()).unsqueeze(0);
  const auto visibilities = FourierCube(coords)->forward(sky)[0];
  CHECK(relative_error(visibilities, gaussian.visibility(coords.packed_u(), coords.packed_v())) < 1e-10);
  CHECK(visibilities[0][0].abs().item<double>() == Approx(std::abs(gaussian.flux())).epsilon(1e-10));
}
