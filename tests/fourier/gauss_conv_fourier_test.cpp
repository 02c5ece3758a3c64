#include "catch.h"

#include <vector>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/gauss_conv_fourier.h>
#include <mpol_cpp/images/gauss_conv_image.h>

#include "compare.h"
#include "golden.h"
#include "images/gauss_conv_checks.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("the taper of a Gaussian beam is the reference's", "[fourier][quick]") {
  const Golden golden("images_gauss");
  const auto taper = gaussian_beam_taper(golden_beam(golden), dataset_coords());
  CHECK(relative_error(taper, golden("out_correct_taper_packed")) < 1e-12);
  CHECK(relative_error(taper, golden("bug_gaussconvfourier_taper_packed")) > 0.1);  // MPoL's is turned by 90 degrees
}

TEMPLATE_TEST_CASE("convolution in the Fourier plane and its backward are adjoint, and it is its own adjoint", "[fourier][quick]",
                   float, double) {
  const GridCoords coords(0.05, 30);
  const std::vector<Beam> beams{{.major = 0.3, .minor = 0.2, .position_angle = 30 * units::degree},
                                {.major = 0.4, .minor = 0.4, .position_angle = 0}};
  const GaussConvFourier convolve(coords, beams);
  const auto random = [](std::uint64_t seed) { return normal({3, 2, 30, 30}, dtype_of<TestType>(), seed); };
  const auto x = random(1), y = random(2);
  const auto linear = [&](const Tensor& sky) { return convolve->forward(sky); };
  const double bound = tolerance<TestType>(1e-13, 1e-6);
  CHECK(backward_adjoint_error(linear, x, y, random(3)) < bound);
  CHECK(adjoint_error(linear(x), y, x, linear(y)) < bound);  // a Gaussian is even
}

TEMPLATE_TEST_CASE("images convolved in the Fourier plane and their gradient are the reference's", "[fourier][quick]", float,
                   double) {
  const Golden golden("images_gauss"), dataset("dataset");
  const auto sky = dataset("in_image_sky").narrow(0, 0, 1).to(dtype_of<TestType>());
  auto conv = GaussConvFourier(dataset_coords(), golden_beam(golden));
  const double bound = tolerance<TestType>(1e-12, 2e-6);
  const auto convolved = conv->forward(sky);
  CHECK(convolved.scalar_type() == dtype_of<TestType>());
  CHECK(relative_error(convolved, golden("out_correct_fourier_sky")) < bound);
  CHECK(relative_error(sky_to_packed(convolved), golden("out_correct_fourier_packed")) < bound);
  const auto weights = packed_to_sky(golden("in_random_weights")).to(dtype_of<TestType>());
  const auto gradient = gradient_of([&](const Tensor& x) { return (weights * conv->forward(x)).sum(); }, sky);
  CHECK(relative_error(sky_to_packed(gradient), golden("out_correct_fourier_gradient_packed")) < bound);
}

TEST_CASE("convolutions in the two planes agree away from the border, at any position angle", "[fourier][quick]") {
  const std::int64_t npix = 96, border = 24;
  const GridCoords coords(0.05, npix);
  const double angle = GENERATE(0.0, 17.0, 45.0, 90.0, 120.0, -75.0);
  const Beam beam{.major = 0.3, .minor = 0.2, .position_angle = angle * units::degree};  // 6 x 4 cells
  const auto sky = random_image(coords, 2, torch::kFloat64, 5);                          // nothing smooth about it
  const auto in_image = GaussConvImage(coords, beam)->forward(sky), in_fourier = GaussConvFourier(coords, beam)->forward(sky);
  const auto inner = [&](const Tensor& cube) { return cube.slice(1, border, npix - border).slice(2, border, npix - border); };
  CHECK(relative_error(inner(in_image), inner(in_fourier)) < 1e-6);
}

TEST_CASE("a convolution in the Fourier plane keeps the flux and wraps around", "[fourier][quick]") {
  const GridCoords coords(0.05, 32);
  auto sky = torch::zeros({1, 32, 32}, torch::kFloat64);
  sky[0][0][0] = 1.0;
  const auto blurred =
      GaussConvFourier(coords, Beam{.major = 0.4, .minor = 0.3, .position_angle = 20 * units::degree})->forward(sky);
  CHECK(blurred.sum().item<double>() == Approx(1).epsilon(1e-13));
  CHECK(blurred[0][31][31].item<double>() > 1e-3);
}

TEST_CASE("in the Fourier plane every channel has its own beam", "[fourier][quick]") {
  check_beams_of_channels<GaussConvFourier>(1e-14);
}

TEST_CASE("two convolutions are one with the sum of the squared widths", "[fourier][quick]") {
  const GridCoords coords(0.05, 48);
  const auto sky = random_image(coords, 1, torch::kFloat64, 6);
  const auto conv = [&](double fwhm, const Tensor& image) {
    return GaussConvFourier(coords, Beam{.major = fwhm, .minor = fwhm, .position_angle = 0})->forward(image);
  };
  CHECK(relative_error(conv(0.3, conv(0.4, sky)), conv(0.5, sky)) < 1e-14);
}
