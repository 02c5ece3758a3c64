#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/regrid.h>
#include <mpol_cpp/images/reproject.h>
#include <mpol_cpp/models/image_cube.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Pixels whose columns run `turn` degrees from North through West, the reference position between two of them.
PixelLattice turned(double width, double height, double turn, double row, double column) {
  const double c = std::cos(turn * units::degree), s = std::sin(turn * units::degree);
  return {.east_per_column = -width * c,
          .east_per_row = -height * s,
          .north_per_column = -width * s,
          .north_per_row = height * c,
          .reference_row = row,
          .reference_column = column};
}

/// East and North of the middles of pixels, each (rows, columns).
std::pair<Tensor, Tensor> positions(const PixelLattice& lattice, std::int64_t rows, std::int64_t columns) {
  const auto row = (torch::arange(rows, torch::kFloat64) - lattice.reference_row).unsqueeze(1);
  const auto column = (torch::arange(columns, torch::kFloat64) - lattice.reference_column).unsqueeze(0);
  return {lattice.east_per_row * row + lattice.east_per_column * column,
          lattice.north_per_row * row + lattice.north_per_column * column};
}

double total(const Tensor& image) { return image.to(torch::kFloat64).sum().item<double>(); }

}  // namespace

TEMPLATE_TEST_CASE("square pixels with North up are regridded alike", "[images][quick]", float, double) {
  const GridCoords from(0.05, 40), to(GENERATE(0.03, 0.05, 0.11), 30);
  const PixelLattice lattice{.east_per_column = -0.05, .north_per_row = 0.05, .reference_row = 20, .reference_column = 19};
  const auto sky = random_image(from, 2, dtype_of<TestType>(), 1);
  const auto moved = reproject(sky, lattice, to, {0.02, -0.07});
  CHECK(moved.scalar_type() == dtype_of<TestType>());
  CHECK(relative_error(moved, regrid(sky, from, to, {-0.02, 0.07})) < tolerance<TestType>(1e-12, 1e-6));
}

TEMPLATE_TEST_CASE("any pixels keep flux and place", "[images][quick]", float, double) {
  const auto lattice = GENERATE(turned(0.05, 0.05, 30, 11.3, 20.6), turned(0.04, 0.11, -137, 3, -8.2),
                                turned(-0.06, 0.05, 90, 10, 10), PixelLattice{-0.05, 0.03, 0.01, 0.06, 12, 15});
  const auto cube = uniform({2, 24, 32}, dtype_of<TestType>(), 3);
  const GridCoords to(GENERATE(0.027, 0.06, 0.3), 256);
  const auto moved = reproject(cube, lattice, to);
  CHECK((moved >= 0).all().template item<bool>());
  const auto [east, north] = positions(lattice, 24, 32);
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const auto before = cube[channel].to(torch::kFloat64), after = moved[channel].to(torch::kFloat64);
    CHECK(total(after) * to.cell_area() == Approx(total(before) * lattice.area()).epsilon(tolerance<TestType>(1e-12, 1e-5)));
    // A pixel's flux goes to the middle of its cell: 0.29 cells away (root mean square), of 768 pixels 0.0104. Four times that.
    CHECK(total(after * to.sky_x()) / total(after) ==
          Approx(total(before * east) / total(before)).margin(0.0417 * to.cell_size()));
    CHECK(total(after * to.sky_y()) / total(after) ==
          Approx(total(before * north) / total(before)).margin(0.0417 * to.cell_size()));
  }
}

TEST_CASE("an even brightness stays as it is, in the image's own outline", "[images][quick]") {
  const auto lattice = turned(0.05, 0.08, 33, 20, 30);
  const GridCoords to(0.07, 96);
  const auto moved = reproject(at::full({40, 60}, 2.5, torch::kFloat64), lattice, to);
  CHECK(moved.max().item<double>() == Approx(2.5).epsilon(1e-12));
  CHECK(total(moved > 0) * to.cell_area() >= 40 * 60 * lattice.area());
  const auto inner = moved.narrow(0, 44, 8).narrow(1, 44, 8);
  CHECK(relative_error(inner, at::full({8, 8}, 2.5, torch::kFloat64)) < 1e-12);
}

TEST_CASE("a quarter of a turn moves pixels as they are", "[images][quick]") {
  const auto image = uniform({8, 8}, torch::kFloat64, 5);
  const auto moved = reproject(image, turned(0.1, 0.1, 90, 4, 3), GridCoords(0.1, 10));
  // The file's columns run West and its rows South: one row on is one column to the right, one column on is one row down.
  CHECK(moved.sum().item<double>() == Approx(image.sum().item<double>()).epsilon(1e-12));
  CHECK(moved[5 + 1][4].item<double>() == Approx(image[4][2].item<double>()).epsilon(1e-12));
  CHECK(moved[5][4 + 1].item<double>() == Approx(image[4 + 1][3].item<double>()).epsilon(1e-12));
}

TEST_CASE("what cannot be reprojected is refused", "[images][quick]") {
  const GridCoords to(0.1, 8);
  CHECK_THROWS_AS(reproject(at::zeros({4}, torch::kFloat64), {}, to), ShapeError);
  CHECK_THROWS_AS(reproject(at::zeros({4, 4}, torch::kFloat64), {-1, 1, -1, 1, 0, 0}, to), ValueError);
  CHECK_THROWS_AS(reproject(at::zeros({4, 4}, torch::kFloat64).requires_grad_(), {}, to), ValueError);
}
