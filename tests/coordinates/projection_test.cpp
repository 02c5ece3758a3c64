#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/coordinates/projection.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

OrbitAngles angles_of(const Tensor& row) { return {row[0].item<double>(), row[1].item<double>(), row[2].item<double>()}; }

}  // namespace

TEMPLATE_TEST_CASE("projections equal MPoL's", "[geometry][quick]", float, double) {
  const Golden golden("geometry");
  const auto x = golden("in_x").to(dtype_of<TestType>()), y = golden("in_y").to(dtype_of<TestType>());
  const auto& angles = golden("in_omega_incl_Omega");
  for (std::int64_t i = 0; i < angles.size(0); ++i) {
    const auto [sky_x, sky_y] = flat_to_observer(x, y, angles_of(angles[i]));
    const auto [flat_x, flat_y] = observer_to_flat(x, y, angles_of(angles[i]));
    CHECK(sky_x.scalar_type() == dtype_of<TestType>());
    const double bound = tolerance<TestType>(1e-14, 1e-6);
    CHECK(relative_error(torch::stack({sky_x, sky_y}), golden("out_flat_to_observer")[i]) < bound);
    CHECK(relative_error(torch::stack({flat_x, flat_y}), golden("out_observer_to_flat")[i]) < bound);
  }
}

TEMPLATE_TEST_CASE("a projection and its inverse undo each other", "[geometry][quick]", float, double) {
  const auto draw = GENERATE(range(0, 10));
  const auto random = (uniform({3}, torch::kFloat64, static_cast<std::uint64_t>(draw)) - 0.5) * 2 * units::pi;
  OrbitAngles angles = angles_of(random);
  angles.inclination *= 0.45;  // within 81 degrees
  const auto x = normal({40}, dtype_of<TestType>(), 1), y = normal({40}, dtype_of<TestType>(), 2);
  const auto [sky_x, sky_y] = flat_to_observer(x, y, angles);
  const auto [flat_x, flat_y] = observer_to_flat(sky_x, sky_y, angles);
  CHECK(relative_error(flat_x, x) < tolerance<TestType>(1e-14, 1e-5));
  CHECK(relative_error(flat_y, y) < tolerance<TestType>(1e-14, 1e-5));
}

TEST_CASE("the ascending node lies at its position angle", "[geometry][quick]") {
  const double node = 30 * units::degree;
  const auto one = torch::ones({1}, torch::kFloat64), zero = torch::zeros({1}, torch::kFloat64);
  const auto [north, east] = flat_to_observer(one, zero, {.periastron = 0, .inclination = 1.0, .node = node});
  CHECK(north.item<double>() == Approx(std::cos(node)));
  CHECK(east.item<double>() == Approx(std::sin(node)));
}

TEST_CASE("inclination shortens what is across the node", "[geometry][quick]") {
  const double inclination = 60 * units::degree;
  const auto one = torch::ones({1}, torch::kFloat64), zero = torch::zeros({1}, torch::kFloat64);
  const auto [north, east] = flat_to_observer(zero, one, {.periastron = 0, .inclination = inclination, .node = 0});
  CHECK(std::abs(north.item<double>()) < 1e-15);
  CHECK(east.item<double>() == Approx(0.5));
}

TEST_CASE("a disc seen edge on has no deprojection", "[geometry][quick]") {
  const auto x = torch::ones({1}, torch::kFloat64);
  CHECK_THROWS_AS(observer_to_flat(x, x, {.periastron = 0, .inclination = 90 * units::degree, .node = 0}), ValueError);
}
