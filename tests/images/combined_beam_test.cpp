#include "catch.h"

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/combined_beam.h>
#include <mpol_cpp/images/gauss_conv_image.h>

#include "compare.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("an image convolved twice is one convolved with the combined beam", "[images][quick]") {
  const GridCoords coords(0.02, 128);
  auto sky = torch::zeros({1, 128, 128}, torch::kFloat64);
  sky[0][60][70] = 1.0;
  const Beam b{0.3, 0.12, -50 * units::degree};
  for (const auto& a : {Beam{0.25, 0.15, 20 * units::degree}, Beam{0.2, 0.2, 0}, Beam{0.31, 0.1, 90 * units::degree}, b}) {
    const auto both = convolved_beam(a, b);
    CHECK(both.position_angle > -units::pi / 2);
    CHECK(both.position_angle <= units::pi / 2);
    const auto twice = GaussConvImage(coords, a)->forward(GaussConvImage(coords, b)->forward(sky));
    CHECK(relative_error(twice, GaussConvImage(coords, both)->forward(sky)) < 1e-6);
    const auto back = beam_between(a, both);
    REQUIRE(back.has_value());
    CHECK_THAT(back->major, WithinRel(b.major, 1e-9));
    CHECK_THAT(back->minor, WithinRel(b.minor, 1e-9));
    CHECK_THAT(back->position_angle, WithinAbs(b.position_angle, 1e-9));
  }
  CHECK_THAT(convolved_beam({0.4, 0.4, 0}, {0.3, 0.3, 0}).major, WithinRel(0.5, 1e-14));
}

TEST_CASE("no beam leads to one that is narrower in any direction", "[images][quick]") {
  CHECK_FALSE(beam_between({0.3, 0.3, 0}, {0.2, 0.2, 0}));
  CHECK_FALSE(beam_between({0.3, 0.3, 0}, {0.5, 0.25, 40 * units::degree}));
  CHECK_FALSE(beam_between({0.4, 0.2, 0}, {0.4, 0.2, 60 * units::degree}));
  CHECK_FALSE(beam_between({0.3, 0.2, 10 * units::degree}, {0.3, 0.2, 10 * units::degree}));
  CHECK(beam_between({0.3, 0.2, 10 * units::degree}, {0.31, 0.21, 10 * units::degree}));
}
