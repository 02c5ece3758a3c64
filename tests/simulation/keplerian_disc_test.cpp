#include "catch.h"

#include <cmath>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/simulation/keplerian_disc.h>

#include "compare.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const KeplerianDisc inclined{.mass = 1.3,
                             .distance = 120,
                             .inclination = 40 * units::degree,
                             .position_angle = 90 * units::degree,
                             .systemic_velocity = 0.4,
                             .inner_radius = 0.2,
                             .outer_radius = 1.0,
                             .line_width = 0.3,
                             .flux = 2.5};

/// Middles of channels about a velocity, far enough for the whole line.
std::vector<double> all_velocities(const KeplerianDisc& disc, double width) {
  const auto half = static_cast<std::int64_t>(std::ceil(disc.velocity_extent() / width)) + 2;
  std::vector<double> velocities;
  for (std::int64_t i = -half; i <= half; ++i) velocities.push_back(disc.systemic_velocity + width * static_cast<double>(i));
  return velocities;
}

/// Mean velocity of each pixel, (npix, npix).
Tensor mean_velocity(const Tensor& cube, const std::vector<double>& velocities) {
  return (cube * torch::tensor(velocities, torch::kFloat64).view({-1, 1, 1})).sum(0) / cube.sum(0);
}

}  // namespace

TEST_CASE("the flux of a line is the disc's, whatever its width, index and channels", "[simulation][quick]") {
  const GridCoords coords(0.04, 64);
  auto disc = inclined;
  disc.brightness_index = GENERATE(0.0, 0.5, 2.0);
  disc.line_width = GENERATE(0.05, 0.6);
  const double width = GENERATE(0.1, 0.45);
  const auto cube = render(disc, coords, all_velocities(disc, width), width, 8);
  CHECK(cube.min().item<double>() >= 0);
  CHECK_THAT(cube.sum().item<double>() * coords.cell_area() * width, WithinRel(2.5, 0.01));
}

TEST_CASE("pixels move as Kepler says, the red-shifted end at the position angle", "[simulation][quick]") {
  const GridCoords coords(0.05, 64);
  const double width = 0.1;
  const auto velocities = all_velocities(inclined, width);
  const auto mean = mean_velocity(render(inclined, coords, velocities, width, 16), velocities);
  // A position angle of 90 degrees: the red-shifted end to the East. The phase centre is at row 32, column 31.
  const double radius = 10 * coords.cell_size();
  const double constant = std::sqrt(1.32712440018e20 * 1.3 / (radius * 120 * 1.495978707e11)) / 1e3;
  CHECK_THAT(inclined.velocity_at(radius), WithinRel(constant, 1e-6));
  const double projected = constant * std::sin(inclined.inclination);
  CHECK_THAT(mean[32][31 - 10].item<double>() - 0.4, WithinRel(projected, 0.01));
  CHECK_THAT(mean[32][31 + 10].item<double>() - 0.4, WithinRel(-projected, 0.01));
  CHECK_THAT(mean[32 + 10][31].item<double>(), WithinAbs(0.4, 1e-6));
  // Half way round in the plane of the disc: cos(60 degrees) of the speed there.
  auto turned = inclined;
  turned.position_angle = 0;
  const auto north = mean_velocity(render(turned, coords, velocities, width, 16), velocities);
  CHECK_THAT(north[32 + 10][31].item<double>() - 0.4, WithinRel(projected, 0.01));
}

TEST_CASE("the approaching half mirrors the receding one", "[simulation][quick]") {
  const GridCoords coords(0.05, 48);
  auto disc = inclined;
  disc.position_angle = 37 * units::degree;
  const auto velocities = all_velocities(disc, 0.25);
  const auto cube = render(disc, coords, velocities, 0.25);
  // Seen through the phase centre and at the opposite velocity. Row 0 and the last column have no partner.
  const auto inner = cube.narrow(1, 1, 47).narrow(2, 0, 47);
  CHECK(relative_error(inner.flip({0, 1, 2}), inner) < 1e-10);
  // A disc face on does not move along the line of sight.
  disc.inclination = 0;
  const auto still = render(disc, coords, {0.4 - 2, 0.4, 0.4 + 2}, 0.5);
  CHECK(still[0].max().item<double>() < 1e-6 * still[1].max().item<double>());
  CHECK(still[2].max().item<double>() < 1e-6 * still[1].max().item<double>());
}

TEST_CASE("offset and extent are the disc's", "[simulation][quick]") {
  const GridCoords coords(0.05, 64);
  auto disc = inclined;
  disc.offset_east = 0.3;
  disc.offset_north = -0.2;
  CHECK(disc.half_width() == Approx(1.3));
  const auto velocities = all_velocities(disc, 0.3);
  const auto image = render(disc, coords, velocities, 0.3).sum(0), plain = render(inclined, coords, velocities, 0.3).sum(0);
  // Six pixels to the East, which is to the left, and four to the South.
  CHECK(relative_error(image.roll({4, 6}, {0, 1}), plain) < 1e-9);
  const auto beyond = at::hypot(coords.sky_x() - 0.3, coords.sky_y() + 0.2) > 1.0 + coords.cell_size();
  CHECK(image.masked_select(beyond).abs().max().item<double>() == 0);
  // Beyond velocity_extent nothing is left.
  const double far = disc.velocity_extent();
  const auto outside = render(disc, coords, {0.4 - far - 0.5, 0.4 + far + 0.5}, 1.0);
  CHECK(outside.sum().item<double>() < 1e-4 * image.sum().item<double>());
}

TEST_CASE("the channels of an observation hold the line in their order", "[simulation][quick]") {
  const GridCoords coords(0.05, 64);
  const double rest = 230.538e9, spacing = 200e3, width = spacing / rest * units::speed_of_light / 1e3;
  const auto up = line_channels(inclined, coords, spacing, rest), down = line_channels(inclined, coords, -spacing, rest);
  CHECK(up.size(0) % 2 == 1);
  CHECK(line_width_in_channels(inclined, spacing, rest) == up.size(0));
  CHECK(0.5 * static_cast<double>(up.size(0)) * width >= inclined.velocity_extent());
  CHECK(0.5 * static_cast<double>(up.size(0) - 2) * width < inclined.velocity_extent());
  CHECK_THAT(up.sum().item<double>() * coords.cell_area() * width, WithinRel(2.5, 0.01));
  CHECK(relative_error(down.flip({0}), up) < 1e-10);
  // Of rising frequencies the first channels recede: they lie to the East.
  const auto east = (up[2] * coords.sky_x()).sum() / up[2].sum();
  CHECK(east.item<double>() > 0.1);
  // One channel that is wide enough holds all of it, and the same channel added up does.
  const auto wide = line_channels(inclined, coords, 1e9, rest);
  REQUIRE(wide.size(0) == 1);
  CHECK(relative_error(wide[0] * 1e9, up.sum(0) * spacing) < 1e-3);
  CHECK_THROWS_AS(line_channels(inclined, coords, 0, rest), ValueError);
  CHECK_THROWS_AS(line_channels(inclined, coords, 1e-6, rest), ValueError);
  CHECK_THROWS_AS(line_channels(inclined, coords, spacing, -rest), ValueError);
}

TEST_CASE("a disc without meaning is refused", "[simulation][quick]") {
  const GridCoords coords(0.1, 16);
  const auto refuse = [&](const auto& alter) {
    auto disc = inclined;
    alter(disc);
    CHECK_THROWS_AS(render(disc, coords, {0.0}, 0.1), ValueError);
  };
  refuse([](auto& disc) { disc.mass = 0; });
  refuse([](auto& disc) { disc.distance = -1; });
  refuse([](auto& disc) { disc.inclination = units::pi / 2; });
  refuse([](auto& disc) { disc.inner_radius = 0; });
  refuse([](auto& disc) { disc.outer_radius = 0.1; });
  refuse([](auto& disc) { disc.line_width = 0; });
  refuse([](auto& disc) { disc.flux = NAN; });
  CHECK_THROWS_AS(render(inclined, coords, {}, 0.1), ValueError);
  CHECK_THROWS_AS(render(inclined, coords, {0.0}, 0), ValueError);
  CHECK_THROWS_AS(render(inclined, coords, {0.0}, 0.1, 0), ValueError);
}
