#include "catch.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ops/rot90.h>
#include <ATen/ops/roll.h>

#include <mpol_cpp/analysis/polar_bins.h>
#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

#include "compare.h"
#include "inclined_ring.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double full_turn = 2 * units::pi;
const GridCoords polar_grid(0.05, 48);
const DiscGeometry inclined{
    .inclination = 50 * units::degree, .position_angle = 35 * units::degree, .offset_east = 0.113, .offset_north = -0.071};

PolarIntegratorOptions polar_bins(const DiscGeometry& geometry, double radius, std::int64_t nr, std::int64_t nphi) {
  return PolarIntegratorOptions().radii(even_edges(0, radius, nr)).azimuths(even_edges(0, full_turn, nphi)).geometry(geometry);
}

/// Bins of no regular spacing that hold the whole image.
PolarIntegratorOptions uneven_bins(const DiscGeometry& geometry) {
  const double end = 1.001 * farthest_radius(polar_grid, geometry);
  return PolarIntegratorOptions()
      .radii({0, 0.011, 0.3, 0.31, 0.7, 1.1, end})
      .azimuths({-1, -0.9, 0.2, 2.7, 2.71, full_turn - 1})
      .geometry(geometry);
}

/// How much of every pixel lies in the bins, (npix, npix).
Tensor covered(const PolarIntegrator& integrator) {
  return integrator.adjoint(torch::ones({integrator.nr(), integrator.nphi()}, torch::kFloat64)) / polar_grid.cell_area();
}

}  // namespace

TEST_CASE("bins that hold the image share out every pixel whole, and hold their own area", "[analysis][polar][quick]") {
  // The centre in the middle of a pixel, on a corner, on an edge, and anywhere.
  const DiscGeometry geometry =
      GENERATE(DiscGeometry{}, DiscGeometry{.offset_east = 0.025, .offset_north = 0.025},
               DiscGeometry{.inclination = 1.2, .offset_north = -0.025}, DiscGeometry{.inclination = 2.5, .position_angle = 3},
               inclined, DiscGeometry{.offset_east = 5, .offset_north = 1});
  const PolarIntegrator all(polar_grid, uneven_bins(geometry));
  CHECK((covered(all) - 1).abs().max().item<double>() < 1e-11);
  CHECK(all.area().sum().item<double>() == Approx(48 * 48 * polar_grid.cell_area()).epsilon(1e-12));
  if (geometry.offset_east == 5) return;
  const double radius = 0.3;  // the bins lie within the image
  const PolarIntegrator inner(polar_grid, polar_bins(geometry, radius, 7, 5));
  const double foreshortening = std::abs(std::cos(geometry.inclination));
  for (std::int64_t i = 0; i < 7; ++i) {
    const double area = units::pi * (2 * static_cast<double>(i) + 1) * std::pow(radius / 7, 2) * foreshortening / 5;
    CHECK((inner.area()[i] - area).abs().max().item<double>() < 1e-11 * area);
  }
}

TEST_CASE("one wide bin, a gap and many narrow ones cover what they should", "[analysis][polar][quick]") {
  const double radius = 0.6, area = units::pi * radius * radius * std::cos(inclined.inclination);
  for (const double opening : {0.7, 2.5, units::pi, 4.0, 6.2, full_turn}) {
    const PolarIntegrator one(polar_grid,
                              PolarIntegratorOptions().radii({0, radius}).azimuths({0.4, 0.4 + opening}).geometry(inclined));
    CHECK(one.area().item<double>() == Approx(area * opening / full_turn).epsilon(1e-12));
  }
  const PolarIntegrator gap(polar_grid, PolarIntegratorOptions().radii({0.2, radius}).azimuths({5, 5.1, 11}).geometry(inclined));
  const double ring = area * (1 - std::pow(0.2 / radius, 2));
  CHECK(gap.area()[0][0].item<double>() == Approx(ring * 0.1 / full_turn).epsilon(1e-12));
  CHECK(gap.area()[0][1].item<double>() == Approx(ring * 5.9 / full_turn).epsilon(1e-12));
}

TEMPLATE_TEST_CASE("flux is conserved to 1e-6", "[analysis][polar][quick]", float, double) {
  const auto sky = random_image(polar_grid, 3, dtype_of<TestType>(), 1);
  const auto flux = sky.to(torch::kFloat64).sum({1, 2}) * polar_grid.cell_area();
  for (const auto& options : {uneven_bins(inclined), polar_bins(inclined, farthest_radius(polar_grid, inclined), 200, 90)}) {
    const auto sums = PolarIntegrator(polar_grid, options).forward(sky);
    CHECK(sums.scalar_type() == dtype_of<TestType>());
    CHECK(relative_error(sums.to(torch::kFloat64).sum({1, 2}), flux) < tolerance<TestType>(1e-12, 1e-6));
  }
}

TEMPLATE_TEST_CASE("the adjoint is the adjoint, and the gradient", "[analysis][polar][quick][gradient]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const PolarIntegrator integrator(polar_grid, polar_bins(inclined, 1.5, 20, 12));
  const auto sky = normal({2, 48, 48}, dtype, 1), map = normal({2, 20, 12}, dtype, 2), other = normal({2, 48, 48}, dtype, 3);
  CHECK(adjoint_error(integrator.forward(sky), map, sky, integrator.adjoint(map)) < tolerance<TestType>(1e-14, 1e-7));
  const auto linear = [&](const Tensor& image) { return integrator.forward(image); };
  CHECK(backward_adjoint_error(linear, sky, map, other) < tolerance<TestType>(1e-14, 1e-7));
  const auto adjoint = [&](const Tensor& values) { return integrator.adjoint(values); };
  CHECK(backward_adjoint_error(adjoint, map, sky, normal({2, 20, 12}, dtype, 4)) < tolerance<TestType>(1e-14, 1e-7));
}

TEST_CASE("gradients of means and sums are those of finite differences, twice too", "[analysis][polar][quick][gradient]") {
  const PolarIntegrator integrator(polar_grid, polar_bins(inclined, 0.9, 6, 4));
  const auto sky = random_image(polar_grid, 1, torch::kFloat64, 1), direction = normal({1, 48, 48}, torch::kFloat64, 2);
  const auto of_mean = [&](const Tensor& image) { return integrator.integrate(image).mean.pow(3).sum(); };
  const auto of_sum = [&](const Tensor& image) { return integrator.forward(image).pow(3).sum(); };
  CHECK(finite_difference_error(of_mean, sky, direction) < 1e-6);
  CHECK(finite_difference_error(of_sum, sky, direction) < 1e-6);
  CHECK(second_derivative_error(of_mean, sky, direction) < 1e-6);
}

TEMPLATE_TEST_CASE("bins narrower than a pixel show the pixel's own brightness", "[analysis][polar][quick]", float, double) {
  const auto sky = random_image(polar_grid, 1, dtype_of<TestType>(), 1);
  const double step = polar_grid.cell_size() / 50;
  const PolarIntegrator integrator(polar_grid, polar_bins(DiscGeometry{}, 100 * step, 100, 720));
  const auto map = integrator.integrate(sky);
  CHECK((map.area > 0).all().template item<bool>());
  // Along azimuth 0, half a bin to the East of North: up the column of the phase centre, half a pixel and then whole ones.
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto pixel = static_cast<std::int64_t>(std::floor((static_cast<double>(i) + 0.5) / 50 + 0.5));
    if (i == 24 || i == 25 || i == 74 || i == 75) continue;  // rings are curved: within a bin of the border both pixels count
    CHECK(relative_error(map.mean[0][i][0], sky[0][24 + pixel][23]) < tolerance<TestType>(1e-11, 1e-6));
    CHECK(map.variance[0][i][0].template item<double>() < tolerance<TestType>(1e-20, 1e-12));
  }
}

TEST_CASE("azimuth 0 is the major axis, and azimuth grows to the East of it", "[analysis][polar][quick]") {
  const PolarIntegrator north(polar_grid, polar_bins(DiscGeometry{}, 1.1, 1, 4));  // quarters from North to East
  auto sky = torch::zeros({48, 48}, torch::kFloat64);
  sky[34][13] = 1;  // North-East: row up, column to the left
  CHECK(relative_error(north.forward(sky)[0], polar_grid.cell_area() * torch::tensor({1.0, 0.0, 0.0, 0.0}, torch::kFloat64)) <
        1e-12);
  sky.zero_();
  sky[14][13] = 1;  // South-East
  CHECK(north.forward(sky)[0].argmax().item<std::int64_t>() == 1);
  const DiscGeometry turned{.inclination = 60 * units::degree, .position_angle = 90 * units::degree};
  const PolarIntegrator east(polar_grid, polar_bins(turned, 1.1, 11, 36));  // azimuth 0 is East, 90 degrees South
  sky.zero_();
  sky[24][13] = 1;  // 10 pixels, 0.5 arcsec, to the East
  const auto on_major = east.forward(sky);
  CHECK(on_major[4].sum().item<double>() + on_major[5].sum().item<double>() == Approx(polar_grid.cell_area()));
  CHECK(on_major.select(1, 0).sum().item<double>() + on_major.select(1, 35).sum().item<double>() ==
        Approx(polar_grid.cell_area()));
  sky.zero_();
  sky[14][23] = 1;  // 0.5 arcsec to the South: 1 arcsec in the plane
  const auto on_minor = east.forward(sky);
  CHECK(on_minor.sum(1).argmax().item<std::int64_t>() >= 9);
  CHECK(on_minor.sum(0).narrow(0, 8, 2).sum().item<double>() == Approx(polar_grid.cell_area()).epsilon(1e-6));
}

TEMPLATE_TEST_CASE("an inclined ring becomes a straight line", "[analysis][polar][quick]", float, double) {
  const GridCoords fine(0.02, 256);
  const auto ring = inclined_ring(fine, inclined, 0.9, 0.15).to(dtype_of<TestType>());
  const PolarIntegrator integrator(fine, polar_bins(inclined, 1.5, 50, 24));
  const auto map = integrator.integrate(ring);
  const auto expected = at::exp(-0.5 * ((integrator.radius() - 0.9) / 0.15).square()).unsqueeze(1).expand({50, 24});
  CHECK(relative_error(map.mean[0], expected) < 0.01);
  auto wrong = inclined;
  wrong.position_angle = -inclined.position_angle;
  CHECK(relative_error(PolarIntegrator(fine, polar_bins(wrong, 1.5, 50, 24)).integrate(ring).mean[0], expected) > 0.1);
  const auto profile = PolarIntegrator(fine, polar_bins(inclined, 1.5, 50, 1)).integrate(ring);  // one dimension
  CHECK(relative_error(profile.sum.select(2, 0), map.sum.sum(2)) < tolerance<TestType>(1e-12, 1e-6));
}

TEST_CASE("an image turned by a quarter is a map shifted by a quarter", "[analysis][polar][quick]") {
  // About the corner between the four middle pixels, which turning keeps in its place.
  const DiscGeometry middle{.offset_east = -0.025, .offset_north = -0.025};
  const PolarIntegrator integrator(polar_grid, polar_bins(middle, 1.1, 30, 16));
  const auto sky = random_image(polar_grid, 1, torch::kFloat64, 1);
  // out[i][j] = in[j][n - 1 - i]: what was in the North comes to the West.
  const auto before = integrator.forward(sky), after = integrator.forward(at::rot90(sky, 1, {1, 2}));
  CHECK(relative_error(after, at::roll(before, {-4}, {2})) < 1e-11);
  CHECK(relative_error(after, at::roll(before, {4}, {2})) > 0.1);
}

TEMPLATE_TEST_CASE("a stack equals its frames, whatever the number of threads", "[analysis][polar][quick]", float, double) {
  const auto stack = random_image(polar_grid, 11, dtype_of<TestType>(), 1);
  const auto options = polar_bins(inclined, 1.5, 20, 30);
  const auto whole = PolarIntegrator(polar_grid, options).integrate(stack);
  const Threads threads(GENERATE(1, 3));
  const PolarIntegrator integrator(polar_grid, options);
  CHECK(same(integrator.integrate(stack.view({11, 1, 48, 48})).mean.squeeze(1), whole.mean));
  for (std::int64_t i = 0; i < 11; ++i) {
    const auto frame = integrator.integrate(stack[i]);
    CHECK(same(frame.sum, whole.sum[i]));
    CHECK(same(frame.mean, whole.mean[i]));
    CHECK(same(frame.variance, whole.variance[i]));
  }
  CHECK(same(integrator.adjoint(whole.sum), PolarIntegrator(polar_grid, options).adjoint(whole.sum)));
}

TEMPLATE_TEST_CASE("means and variances are those of the pixels' parts", "[analysis][polar][quick]", float, double) {
  const auto sky = random_image(polar_grid, 2, dtype_of<TestType>(), 1);
  const auto weights = uniform({48, 48}, torch::kFloat64, 2);
  const PolarIntegrator integrator(polar_grid, polar_bins(inclined, 1.0, 5, 3).mask(weights));
  const auto map = integrator.integrate(sky);
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      auto bin = torch::zeros({5, 3}, torch::kFloat64);
      bin[i][j] = 1;
      const auto parts = integrator.adjoint(bin);  // of each pixel, mask included
      const auto image = sky[1].to(torch::kFloat64);
      const double area = parts.sum().template item<double>(), mean = (parts * image).sum().template item<double>() / area;
      CHECK(map.area[i][j].template item<double>() == Approx(area));
      CHECK(map.mean[1][i][j].template item<double>() == Approx(mean).epsilon(tolerance<TestType>(1e-12, 1e-6)));
      CHECK(map.variance[1][i][j].template item<double>() ==
            Approx((parts * (image - mean).square()).sum().template item<double>() / area)
                .epsilon(tolerance<TestType>(1e-12, 1e-5)));
    }
  }
  const auto constant = integrator.integrate(torch::full_like(sky, 3));
  CHECK((constant.mean - 3).abs().max().template item<double>() < tolerance<TestType>(1e-13, 1e-6));
  CHECK(constant.variance.max().template item<double>() < tolerance<TestType>(1e-25, 1e-12));
}

TEST_CASE("masked pixels are not read, and bins without area are 0", "[analysis][polar][quick]") {
  auto mask = torch::ones({48, 48}, torch::kFloat64);
  mask.narrow(0, 24, 24).zero_();  // the North
  auto sky = random_image(polar_grid, 1, torch::kFloat64, 1);
  const auto clean = sky * mask;
  sky.narrow(1, 24, 24).fill_(std::numeric_limits<double>::quiet_NaN());
  const DiscGeometry border{.offset_north = -0.025};
  const PolarIntegrator masked(polar_grid, polar_bins(border, 1.0, 10, 4).mask(mask)),
      whole(polar_grid, polar_bins(border, 1.0, 10, 4));
  const auto map = masked.integrate(sky);
  CHECK(relative_error(map.sum, whole.forward(clean)) < 1e-13);
  for (const auto quarter : {0, 3}) {  // from North to East, and from West to North
    CHECK(map.area.select(1, quarter).abs().max().item<double>() < 1e-12);
    CHECK_FALSE(map.mean.isnan().any().item<bool>());
  }
  CHECK(relative_error(map.area.narrow(1, 1, 2), whole.area().narrow(1, 1, 2)) < 1e-12);
  const PolarIntegrator beyond(polar_grid, PolarIntegratorOptions().radii({0, 1, 10, 11}));
  const auto empty = beyond.integrate(clean);
  CHECK(empty.area[2].item<double>() == 0.0);
  CHECK(empty.mean[0][2].item<double>() == 0.0);
  CHECK(empty.variance[0][2].item<double>() == 0.0);
}

TEST_CASE("other devices add the same by index", "[analysis][polar][quick]") {
  const auto parts = pixel_parts(PixelsInPlane(polar_grid, inclined), 48, even_edges(0, 1, 10), even_edges(0, full_turn, 6));
  const SparseOperator matrix(parts, 60, 48 * 48);
  const auto x = normal({3, 48 * 48}, torch::kFloat64, 1);
  CHECK(relative_error(line_sums_by_index(matrix.by_row(), x), matrix.apply(x)) < 1e-13);
  CHECK(relative_error(line_spreads_by_index(matrix.by_row(), x, matrix.apply(x)), matrix.spread(x, matrix.apply(x))) < 1e-13);
}

TEST_CASE("polar bins that cannot be are refused", "[analysis][polar][quick]") {
  const auto make = [](const PolarIntegratorOptions& options) { return PolarIntegrator(polar_grid, options); };
  const auto good = polar_bins(inclined, 1, 4, 4);
  CHECK_THROWS_AS(make(PolarIntegratorOptions()), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).radii({1})), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).radii({-0.1, 1})), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).radii({0, 1, 1})), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).radii({0, std::nan("")})), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).azimuths({0, 7})), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).azimuths({1, 0})), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).geometry({.inclination = units::pi / 2})), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).mask(torch::ones({48, 47}))), ShapeError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).mask(torch::full({48, 48}, 1.1))), ValueError);
  CHECK_THROWS_AS(make(PolarIntegratorOptions(good).mask(torch::full({48, 48}, std::nan("")))), ValueError);
  CHECK_THROWS_AS(even_edges(0, 1, 0), ValueError);
  CHECK_THROWS_AS(even_edges(1, 1, 3), ValueError);
  const auto integrator = make(good);
  CHECK_THROWS_AS(integrator.forward(torch::zeros({48, 46})), ShapeError);
  CHECK_THROWS_AS(integrator.forward(torch::zeros({48, 48}, torch::kInt32)), ShapeError);
  CHECK_THROWS_AS(integrator.adjoint(torch::zeros({4, 5})), ShapeError);
}
