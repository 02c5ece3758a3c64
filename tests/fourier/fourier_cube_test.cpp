#include "catch.h"

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/fourier_cube.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("model visibilities and their gradient equal MPoL's", "[fourier][quick]", float, double) {
  const Golden dataset("dataset"), golden("fourier");
  const double bound = tolerance<TestType>(1e-13, 1e-6);
  const auto fourier = FourierCube(dataset_coords());
  const auto image = dataset("in_image_sky").to(dtype_of<TestType>());
  const auto visibilities = fourier->forward(image);
  CHECK(relative_error(visibilities, golden("out_vis_packed")) < bound);
  CHECK(relative_error(packed_to_ground(visibilities)[0], golden("out_vis_ground_chan0")) < bound);

  const auto c = golden("in_c").to(complex_dtype_of<TestType>());
  const auto gradient = gradient_of([&](const Tensor& x) { return at::real(c.conj() * fourier->forward(x)).sum(); }, image);
  CHECK(relative_error(sky_to_packed(gradient), golden("out_gradient_packed")) < bound);
}

TEST_CASE("the transform of a Gaussian is the analytic one", "[fourier][quick]") {
  const Golden golden("fourier");
  const auto fourier = FourierCube(dataset_coords());
  const auto visibilities = fourier->forward(packed_to_sky(golden("out_gauss_image_packed")).unsqueeze(0))[0];
  const auto error = (visibilities - golden("out_gauss_vis_analytic_packed")).abs().max().item<double>();
  CHECK(error == Approx(golden("out_gauss_fft_max_error").item<double>()).epsilon(1e-3));
}

TEMPLATE_TEST_CASE("the Fourier cube and its adjoint are adjoint", "[fourier][quick]", float, double) {
  const auto npix = GENERATE(2, 16, 42);
  const auto fourier = FourierCube(GridCoords(0.05, npix));
  const auto x = normal({2, npix, npix}, dtype_of<TestType>(), 1);
  const auto y = normal({2, npix, npix}, complex_dtype_of<TestType>(), 2);
  CHECK(adjoint_error(fourier->forward(x), y, x, fourier->adjoint(y)) < tolerance<TestType>(1e-14, 1e-6));
}

TEST_CASE("visibilities of a real image are Hermitian", "[fourier][quick]") {
  const std::int64_t npix = 24;
  const auto visibilities = FourierCube(GridCoords(0.05, npix))->forward(normal({1, npix, npix}, torch::kFloat64, 3))[0];
  const auto partner = visibilities.flip({0, 1}).roll({1, 1}, {0, 1}).conj();
  CHECK(relative_error(visibilities, partner.resolve_conj()) < 1e-14);
}

TEST_CASE("a point source East of the centre turns the phase as the convention says", "[fourier][quick]") {
  const GridCoords coords(0.05, 32);
  auto sky = torch::zeros({1, 32, 32}, torch::kFloat64);
  const std::int64_t row = 20, column = 10;
  sky[0][row][column] = 1.0;
  const double l = coords.sky_x()[row][column].item<double>() * units::arcsec;
  const double m = coords.sky_y()[row][column].item<double>() * units::arcsec;
  CHECK(l > 0);  // left of the centre is East
  const auto phase = (coords.packed_u() * l + coords.packed_v() * m) * (-2 * units::pi);
  const auto expected = at::polar(torch::full_like(phase, coords.cell_area()), phase);
  CHECK(relative_error(FourierCube(coords)->forward(sky)[0], expected) < 1e-13);
}

TEST_CASE("leading dimensions are independent problems", "[fourier][quick]") {
  const auto fourier = FourierCube(GridCoords(0.05, 16));
  const auto images = normal({3, 2, 16, 16}, torch::kFloat64, 4);
  const auto together = fourier->forward(images);
  for (std::int64_t i = 0; i < 3; ++i) CHECK(relative_error(together[i], fourier->forward(images[i])) < 1e-15);
  CHECK_THROWS_AS(fourier->forward(torch::zeros({1, 8, 16})), ShapeError);
}
