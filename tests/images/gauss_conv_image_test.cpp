#include <array>
#include <cmath>

#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/images/gaussian_kernel.h>

#include "compare.h"
#include "gauss_conv_checks.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A point source of 1 at a pixel of an image of zeros.
Tensor point_source(std::int64_t npix, std::int64_t row, std::int64_t column) {
  auto sky = torch::zeros({1, npix, npix}, torch::kFloat64);
  sky[0][row][column] = 1.0;
  return sky;
}

/// Second moments <EE>, <NN>, <EN> of an image about a pixel, arcsec^2.
std::array<double, 3> moments(const Tensor& sky, const GridCoords& coords, double east, double north) {
  const auto x = coords.sky_x() - east, y = coords.sky_y() - north;
  const double sum = sky.sum().item<double>();
  const auto mean = [&](const Tensor& values) { return (sky[0] * values).sum().item<double>() / sum; };
  return {mean(x * x), mean(y * y), mean(x * y)};
}

}  // namespace

TEST_CASE("the Gaussian kernel is the reference's", "[images][quick]") {
  const Golden golden("images_gauss");
  const auto kernel = gaussian_kernel(golden_beam(golden), dataset_coords().cell_size(), 3);
  CHECK(relative_error(kernel, golden("out_correct_kernel")) < 1e-12);
  CHECK(kernel.sum().item<double>() == Approx(1).epsilon(1e-14));
}

TEMPLATE_TEST_CASE("images convolved with a Gaussian are the reference's", "[images][quick]", float, double) {
  const Golden golden("images_gauss"), dataset("dataset");
  const auto sky = dataset("in_image_sky").narrow(0, 0, 1).to(dtype_of<TestType>());
  const double bound = tolerance<TestType>(1e-12, 2e-6);
  const auto cut = GaussConvImage(dataset_coords(), golden_beam(golden), 3)->forward(sky);
  CHECK(cut.scalar_type() == dtype_of<TestType>());
  CHECK(relative_error(cut, golden("out_correct_image_sky")) < bound);
  CHECK(relative_error(GaussConvImage(dataset_coords(), golden_beam(golden))->forward(sky),
                       golden("out_correct_image_7sigma_sky")) < bound);
  CHECK(relative_error(cut, golden("bug_gaussconvimage_sky")) > 1e-2);  // MPoL's kernel has another spacing
}

TEST_CASE("the major axis lies at its position angle, East of North", "[images][quick]") {
  const GridCoords coords(0.05, 96);
  const double angle = GENERATE(0.0, 30.0, 90.0, -60.0, 135.0);
  const Beam beam{.major = 0.5, .minor = 0.25, .position_angle = angle * units::degree};
  const auto sky = point_source(96, 52, 40);
  const auto blurred = GaussConvImage(coords, beam)->forward(sky);
  const double east = coords.sky_x()[52][40].item<double>(), north = coords.sky_y()[52][40].item<double>();
  const auto [ee, nn, en] = moments(blurred, coords, east, north);
  const double major = std::pow(0.5 / units::fwhm_per_sigma, 2), minor = std::pow(0.25 / units::fwhm_per_sigma, 2);
  const double c = std::cos(angle * units::degree), s = std::sin(angle * units::degree);
  CHECK(ee == Approx(major * s * s + minor * c * c).epsilon(1e-6));
  CHECK(nn == Approx(major * c * c + minor * s * s).epsilon(1e-6));
  CHECK_THAT(en, WithinAbs((major - minor) * s * c, 1e-6 * major));
}

TEST_CASE("a Gaussian convolution keeps the flux of what is away from the border, and loses it beyond", "[images][quick]") {
  const GridCoords coords(0.05, 64);
  const auto conv = GaussConvImage(coords, Beam{.major = 0.4, .minor = 0.3, .position_angle = 20 * units::degree});
  CHECK(conv->forward(point_source(64, 30, 35)).sum().item<double>() == Approx(1).epsilon(1e-12));
  const auto corner = conv->forward(point_source(64, 0, 0));
  CHECK(corner.sum().item<double>() < 0.5);
  CHECK(corner.sum().item<double>() > 0.25);
  CHECK(std::abs(corner[0][63][63].item<double>()) < 1e-15);  // nothing wraps around
}

TEST_CASE("a Gaussian convolution is its own adjoint", "[images][quick]") {
  const auto npix = GENERATE(8, 42);
  const GridCoords coords(0.05, npix);
  auto conv = GaussConvImage(coords, Beam{.major = 0.39, .minor = 0.2, .position_angle = -40 * units::degree});
  const auto x = normal({2, npix, npix}, torch::kFloat64, 1), y = normal({2, npix, npix}, torch::kFloat64, 2);
  CHECK(adjoint_error(conv->forward(x), y, x, conv->forward(y)) < 1e-14);
  const auto gradient = gradient_of([&](const Tensor& sky) { return (y * conv->forward(sky)).sum(); }, x);
  CHECK(relative_error(gradient, conv->forward(y)) < 1e-13);
}

TEST_CASE("every channel has its own beam", "[images][quick]") { check_beams_of_channels<GaussConvImage>(1e-13); }

TEST_CASE("the kernel keeps its precision when the module is narrowed", "[images][quick]") {
  const GridCoords coords(0.05, 32);
  auto conv = GaussConvImage(coords, Beam{.major = 0.3, .minor = 0.2, .position_angle = 10 * units::degree});
  const auto sky = random_image(coords, 1, torch::kFloat64, 4);
  const auto before = conv->forward(sky);
  conv->to(torch::kFloat32);
  CHECK(same(conv->forward(sky), before));
}

TEST_CASE("beams and images that do not fit are refused", "[images][quick]") {
  const GridCoords coords(0.05, 32);
  const Beam beam{.major = 0.3, .minor = 0.2, .position_angle = 0};
  CHECK_THROWS_AS(GaussConvImage(coords, Beam{.major = 0.2, .minor = 0.0, .position_angle = 0}), ValueError);
  CHECK_THROWS_AS(GaussConvImage(coords, Beam{.major = 20, .minor = 1, .position_angle = 0}), ValueError);
  CHECK_THROWS_AS(GaussConvImage(coords, beam, 0.0), ValueError);
  CHECK_THROWS_AS(GaussConvImage(coords, std::vector<Beam>{}), ValueError);
  CHECK_THROWS_AS(GaussConvImage(coords, beam)->forward(torch::zeros({1, 30, 32})), ShapeError);
}
