#include "catch.h"

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/images/restore.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("a point source restored to a beam peaks at its flux in Jy/beam", "[images][quick]", float, double) {
  const GridCoords coords(0.03, 64);
  const std::vector<Beam> beams{{.major = 0.4, .minor = 0.2, .position_angle = 30 * units::degree},
                                {.major = 0.3, .minor = 0.25, .position_angle = -10 * units::degree}};
  auto sky = torch::zeros({2, 64, 64}, dtype_of<TestType>());
  const double flux = 0.7;
  sky.select(1, 30).select(1, 33).fill_(flux / coords.cell_area());
  const auto restored = restore(sky, coords, beams);
  for (std::int64_t c = 0; c < 2; ++c) {
    CHECK(restored[c][30][33].template item<double>() == Approx(flux).epsilon(1e-6));
    const double sum =
        restored[c].sum().template item<double>() * coords.cell_area() / beam_area(beams[static_cast<std::size_t>(c)]);
    CHECK(sum == Approx(flux).epsilon(1e-5));
  }
}

TEST_CASE("the residual is added to a restored image", "[images][quick]") {
  const GridCoords coords(0.03, 32);
  const std::vector<Beam> beam{{.major = 0.3, .minor = 0.2, .position_angle = 0}};
  const auto sky = random_image(coords, 3, torch::kFloat64, 1), residual = normal({3, 32, 32}, torch::kFloat64, 2);
  CHECK(relative_error(restore(sky, coords, beam, residual) - restore(sky, coords, beam), residual) < 1e-13);
  CHECK_THROWS_AS(restore(sky, coords, beam, residual.narrow(0, 0, 1)), ShapeError);
  CHECK_THROWS_AS(restore(sky, coords, {}), ValueError);
}
