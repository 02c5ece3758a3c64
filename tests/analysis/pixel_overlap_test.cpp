#include "catch.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <mpol_cpp/analysis/pixel_overlap.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

using namespace mpol;

namespace {

ConvexPolygon square(double x, double y, double side) {
  const std::vector<PlanePoint> corners = {{x, y}, {x + side, y}, {x + side, y + side}, {x, y + side}};
  return ConvexPolygon(corners);
}

/// The part of a polygon in a sector by points on a fine raster: no formula of the library.
double area_by_counting(double x, double y, double side, double inner, double outer, double first, double second) {
  constexpr int n = 2000;
  const double step = side / n;
  std::int64_t inside = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const double px = x + (i + 0.5) * step, py = y + (j + 0.5) * step, r = std::hypot(px, py);
      const double phi = std::fmod(std::atan2(py, px) - first + 4 * units::pi, 2 * units::pi);
      if (r >= inner && r < outer && phi < second - first) ++inside;
    }
  }
  return static_cast<double>(inside) * step * step;
}

}  // namespace

TEST_CASE("a polygon's overlap with discs and wedges is that of closed forms", "[analysis][polar][quick]") {
  // A disc within the polygon, one that holds it, one that meets a side, one that meets a corner, and one beyond it.
  CHECK(area_in_disc(square(-2, -2, 4), 1.5) == Approx(units::pi * 1.5 * 1.5).epsilon(1e-14));
  CHECK(area_in_disc(square(-2, -2, 4), 3) == Approx(16).epsilon(1e-14));
  CHECK(area_in_disc(square(1, -2, 4), 1.5) == Approx(2.25 * std::acos(1 / 1.5) - std::sqrt(1.25)).epsilon(1e-13));
  CHECK(area_in_disc(square(0, 0, 4), 1) == Approx(units::pi / 4).epsilon(1e-14));
  CHECK_THAT(area_in_disc(square(1, 1, 4), 1), WithinAbs(0, 1e-15));
  CHECK(part_in_wedge(square(-1, -1, 2), 0, units::pi / 2).area() == Approx(1).epsilon(1e-14));
  CHECK(part_in_wedge(square(-1, -1, 2), units::pi / 4, units::pi).area() == Approx(1.5).epsilon(1e-14));
  CHECK(part_in_wedge(square(-1, -1, 2), -0.3, 0.3).area() == Approx(std::tan(0.3)).epsilon(1e-13));
  CHECK(part_in_wedge(square(1, 1, 1), 2, 4).size() == 0);
  CHECK_THROWS_AS(part_in_wedge(square(1, 1, 1), 2, 6), ValueError);
  CHECK_THROWS_AS(part_in_wedge(square(1, 1, 1), 2, 2), ValueError);
}

TEST_CASE("a polygon far from the centre keeps its digits", "[analysis][polar][quick]") {
  const auto far = square(3000, 4000, 1);
  CHECK(far.area() == Approx(1).epsilon(1e-12));
  // Circle and rays are straight lines across so small a square, but for 1e-4 of it.
  CHECK(area_in_disc(far, 5000.5) == Approx(0.5 * std::pow(0.5, 2) / (0.6 * 0.8)).epsilon(1e-3));
  CHECK_THAT(area_in_disc(far, 4999.9), WithinAbs(0, 1e-11));
  CHECK(area_in_disc(far, 5002) == Approx(1).epsilon(1e-11));
}

TEST_CASE("an annular sector's part of a square is the number of raster points in it", "[analysis][polar]") {
  const double x = -0.3, y = 0.2, side = 1.1;
  const double inner = GENERATE(0.0, 0.45), outer = GENERATE(0.6, 3.0), first = GENERATE(0.1, 1.2), second = first + 1.3;
  const auto part = part_in_wedge(square(x, y, side), first, second);
  CHECK_THAT(area_in_disc(part, outer) - area_in_disc(part, inner),
             WithinAbs(area_by_counting(x, y, side, inner, outer, first, second), 2e-3));
}
