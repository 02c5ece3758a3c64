#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/images/regrid.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A round Gaussian East and North of the phase centre, (1, npix, npix) float64.
Tensor blob(const GridCoords& coords) {
  const auto east = coords.sky_x() - 0.31, north = coords.sky_y() - 0.52;
  return at::exp(-0.5 * (east.square() + north.square()) / (0.3 * 0.3)).unsqueeze(0);
}

}  // namespace

TEMPLATE_TEST_CASE("regridding and its backward are adjoint", "[images][quick]", float, double) {
  const GridCoords from(0.05, 40), to(GENERATE(0.03, 0.05, 0.11), 30);
  const auto x = normal({2, 40, 40}, dtype_of<TestType>(), 1), y = normal({2, 30, 30}, dtype_of<TestType>(), 2);
  const auto linear = [&](const Tensor& sky) { return regrid(sky, from, to); };
  CHECK(backward_adjoint_error(linear, x, y, normal({2, 40, 40}, dtype_of<TestType>(), 3)) < tolerance<TestType>(1e-13, 1e-6));
}

TEST_CASE("regridding back, times the ratio of the pixels' areas, is the adjoint of regridding", "[images][quick]") {
  const GridCoords from(0.05, 40), to(0.08, 30);
  const auto x = normal({2, 40, 40}, torch::kFloat64, 1), y = normal({2, 30, 30}, torch::kFloat64, 2);
  const auto back = regrid(y, to, from) * (from.cell_area() / to.cell_area());
  CHECK(adjoint_error(regrid(x, from, to), y, x, back) < 1e-13);
}

TEMPLATE_TEST_CASE("regridding keeps the flux where the new grid covers the old one", "[images][quick]", float, double) {
  const GridCoords from(0.05, 40), to(GENERATE(0.03, 0.05, 0.11), 110);
  const auto sky = random_image(from, 2, dtype_of<TestType>(), 1);
  const auto moved = regrid(sky, from, to);
  CHECK(moved.scalar_type() == dtype_of<TestType>());
  CHECK(relative_error(flux(moved, to), flux(sky, from)) < tolerance<TestType>(1e-13, 1e-5));
  CHECK((moved >= 0).all().template item<bool>());
}

TEST_CASE("a source stays where it is on the sky", "[images][quick]") {
  const GridCoords from(0.04, 128), to(GENERATE(0.025, 0.06), 192);
  const auto moved = regrid(blob(from), from, to);
  CHECK(relative_error(moved, blob(to)) < 0.02);  // means over squares, not samples
  const auto mean = [&](const Tensor& position) { return ((moved[0] * position).sum() / moved.sum()).item<double>(); };
  CHECK(mean(to.sky_x()) == Approx(0.31).epsilon(1e-6));
  CHECK(mean(to.sky_y()) == Approx(0.52).epsilon(1e-6));
}

TEST_CASE("beyond the old image it is dark, and the same grid changes nothing", "[images][quick]") {
  const GridCoords from(0.05, 16), larger(0.05, 32), smaller(0.05, 8);
  const auto sky = random_image(from, 1, torch::kFloat64, 2);
  CHECK(same(regrid(sky, from, from), sky));
  const auto wide = regrid(sky, from, larger);
  CHECK(relative_error(wide.slice(1, 8, 24).slice(2, 8, 24), sky) < 1e-13);
  CHECK(wide.sum().item<double>() == Approx(sky.sum().item<double>()).epsilon(1e-12));
  CHECK(relative_error(regrid(sky, from, smaller), sky.slice(1, 4, 12).slice(2, 4, 12)) < 1e-13);
  CHECK_THROWS_AS(regrid(sky, larger, from), ShapeError);
}

TEMPLATE_TEST_CASE("an image with another center keeps flux and place", "[images][quick]", float, double) {
  const GridCoords from(0.05, 40), to(GENERATE(0.03, 0.05, 0.11), 110);
  const SkyOffset offset = {0.23, -0.117};
  const auto sky = random_image(from, 2, dtype_of<TestType>(), 1);
  const auto moved = regrid(sky, from, to, offset);
  CHECK(relative_error(flux(moved, to), flux(sky, from)) < tolerance<TestType>(1e-13, 1e-5));
  const auto middle = [](const Tensor& image, const Tensor& position) {
    return ((image[0].to(torch::kFloat64) * position).sum() / image[0].to(torch::kFloat64).sum()).template item<double>();
  };
  CHECK(middle(moved, to.sky_x()) == Approx(middle(sky, from.sky_x()) + offset.east).margin(2e-3));
  CHECK(middle(moved, to.sky_y()) == Approx(middle(sky, from.sky_y()) + offset.north).margin(2e-3));
}

TEST_CASE("whole cells between the centers move pixels as they are", "[images][quick]") {
  const GridCoords from(0.1, 16), to(0.1, 16);
  const auto sky = random_image(from, 1, torch::kFloat64, 1);
  const auto moved = regrid(sky, from, to, {0.3, 0.2});
  // Three columns to the East (the left), two rows to the North.
  CHECK(relative_error(moved.slice(1, 2, 16).slice(2, 0, 13), sky.slice(1, 0, 14).slice(2, 3, 16)) < 1e-13);
  CHECK(moved.slice(1, 0, 2).abs().max().item<double>() < 1e-13);
}
