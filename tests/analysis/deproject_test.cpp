#include "catch.h"

#include <mpol_cpp/analysis/deproject.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

#include "compare.h"
#include "inclined_ring.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("an inclined ring deprojected is a round ring about the middle", "[analysis][quick]", float, double) {
  const GridCoords coords(0.02, 192);
  const DiscGeometry geometry{
      .inclination = GENERATE(0.3, 0.9), .position_angle = GENERATE(0.0, 0.8, -1.9), .offset_east = 0.12, .offset_north = -0.2};
  const auto ring = inclined_ring(coords, geometry, 0.8, 0.15).to(dtype_of<TestType>());
  const auto face_on = deproject(ring, coords, geometry);
  CHECK(face_on.scalar_type() == dtype_of<TestType>());
  CHECK(relative_error(face_on, inclined_ring(coords, {}, 0.8, 0.15)) < 2e-3);
}

TEMPLATE_TEST_CASE("deprojection and its backward are adjoint", "[analysis][quick]", float, double) {
  const GridCoords coords(0.05, 40);
  const DiscGeometry geometry{
      .inclination = GENERATE(0.0, 0.9), .position_angle = GENERATE(0.0, 0.8), .offset_east = 0.12, .offset_north = -0.2};
  const auto random = [](std::uint64_t seed) { return normal({2, 40, 40}, dtype_of<TestType>(), seed); };
  const auto linear = [&](const Tensor& sky) { return deproject(sky, coords, geometry); };
  CHECK(backward_adjoint_error(linear, random(1), random(2), random(3)) < tolerance<TestType>(1e-13, 1e-6));
}

TEST_CASE("the major axis of a deprojected disc lies North", "[analysis][quick]") {
  const GridCoords coords(0.05, 64);
  const double angle = 40 * units::degree;
  auto sky = torch::zeros({1, 64, 64}, torch::kFloat64);
  const double distance = 1.0;  // a spot on the major axis, at its position angle
  const auto east = coords.sky_x() - distance * std::sin(angle), north = coords.sky_y() - distance * std::cos(angle);
  sky[0] = at::exp(-0.5 * (east.square() + north.square()) / (0.15 * 0.15));
  const auto face_on = deproject(sky, coords, {.inclination = 0.7, .position_angle = angle, .offset_east = 0, .offset_north = 0});
  const auto peak = face_on[0].argmax().item<std::int64_t>();
  CHECK(peak / 64 == 32 + 20);
  CHECK(peak % 64 == 31);
}

TEST_CASE("a face-on disc about the middle stays as it is", "[analysis][quick]") {
  const GridCoords coords(0.05, 32);
  const auto sky = random_image(coords, 2, torch::kFloat64, 1);
  CHECK(relative_error(deproject(sky, coords, {}), sky) < 1e-11);
  const auto y = random_image(coords, 2, torch::kFloat64, 2);
  const auto gradient = gradient_of([&](const Tensor& x) { return (y * deproject(x, coords, {})).sum(); }, sky);
  CHECK(relative_error(gradient, y) < 1e-11);
}

TEST_CASE("what cannot be deprojected is refused", "[analysis][quick]") {
  const GridCoords coords(0.05, 32);
  CHECK_THROWS_AS(deproject(torch::zeros({1, 16, 32}), coords, {}), ShapeError);
  CHECK_THROWS_AS(deproject(torch::zeros({1, 32, 32}), coords, {.inclination = 90 * units::degree}), ValueError);
}
