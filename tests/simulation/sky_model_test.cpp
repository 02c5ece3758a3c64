#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/simulation/direct_visibilities.h>
#include <mpol_cpp/simulation/sky_model.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using mpol::units::degree;

namespace {

double total_flux(const Tensor& image, const GridCoords& coords) { return image.sum().item<double>() * coords.cell_area(); }

/// Position angle (North through East, degrees) of the centre of light of an image.
double position_angle_of_light(const Tensor& image, const GridCoords& coords) {
  const double east = (image * coords.sky_x()).sum().item<double>(), north = (image * coords.sky_y()).sum().item<double>();
  return std::atan2(east, north) / degree;
}

/// A disc that is one Gaussian of this full width at half maximum.
RingedDisc gaussian(double width) {
  RingedDisc disc;
  disc.rings = {{0.0, width, 1.0}};
  disc.crescent.reset();
  return disc;
}

}  // namespace

TEST_CASE("a rendered disc has its flux in every channel", "[visibilities][quick]") {
  RingedDisc disc;
  disc.offset_east = 0.2;
  const GridCoords coords(0.03, 128);
  const auto cube = render(disc, coords, {230e9, 345e9});
  CHECK(cube.sizes() == at::IntArrayRef({2, 128, 128}));
  CHECK(total_flux(cube[0], coords) == Approx(disc.flux).epsilon(1e-6));
  CHECK(total_flux(cube[1], coords) == Approx(disc.flux * std::pow(1.5, disc.spectral_index)).epsilon(1e-6));
}

TEST_CASE("pixels are means over their area", "[visibilities][quick]") {
  const RingedDisc disc;
  const auto fine = render(disc, GridCoords(0.02, 256), {230e9}, 1);
  const auto means = fine.reshape({1, 128, 2, 128, 2}).mean({2, 4});
  // Cells of the coarse grid begin where those of the fine one do, half a fine cell from the centre of the map.
  RingedDisc shifted = disc;
  shifted.offset_east = shifted.offset_north = -0.01;
  const auto coarse = render(shifted, GridCoords(0.04, 128), {230e9}, 2);
  CHECK(relative_error(coarse, means) < 1e-12);
}

TEST_CASE("the crescent is where it was put, on the sky", "[visibilities][quick]") {
  const GridCoords coords(0.03, 128);
  for (const double angle : {-150.0, -60.0, 20.0, 140.0}) {
    RingedDisc disc;
    disc.rings.clear();
    disc.inclination = 0;
    disc.crescent->position_angle = angle * degree;
    INFO(angle);
    CHECK(position_angle_of_light(render(disc, coords, {230e9})[0], coords) == Approx(angle).margin(0.01));

    disc.inclination = 50 * degree;
    disc.crescent->azimuthal_width = 5 * degree;
    CHECK(position_angle_of_light(render(disc, coords, {230e9})[0], coords) == Approx(angle).margin(0.5));
  }
}

TEST_CASE("an inclined disc is long along its position angle", "[visibilities][quick]") {
  auto disc = gaussian(0.6);
  disc.inclination = 60 * degree;
  disc.position_angle = 30 * degree;
  const GridCoords coords(0.03, 128);
  const auto image = render(disc, coords, {230e9})[0];
  const auto x = coords.sky_x(), y = coords.sky_y();
  const auto along = x * std::sin(disc.position_angle) + y * std::cos(disc.position_angle);
  const auto across = x * std::cos(disc.position_angle) - y * std::sin(disc.position_angle);
  const double long_axis = (image * along.square()).sum().item<double>();
  const double short_axis = (image * across.square()).sum().item<double>();
  // Pixels are means over 4 x 4 points, which have a width of their own.
  const double pixel = image.sum().item<double>() * coords.cell_area() * (1 - 1 / 16.0) / 12;
  CHECK((short_axis - pixel) / (long_axis - pixel) == Approx(0.25).epsilon(1e-6));
  CHECK((image * along * across).sum().item<double>() / long_axis == Approx(0).margin(1e-9));
}

TEST_CASE("direct sums give a Gaussian disc's own transform", "[visibilities][quick]") {
  auto disc = gaussian(0.5);
  disc.inclination = 40 * degree;
  disc.position_angle = 70 * degree;
  disc.offset_east = 0.11;
  disc.offset_north = -0.07;
  const auto u = 3e5 * normal({200}, torch::kFloat64, 1), v = 3e5 * normal({200}, torch::kFloat64, 2);
  const auto baselines = Baselines::in_lambda(u, v);
  const auto grid = sampling_grid(disc, std::max(baselines.max_abs_u(), baselines.max_abs_v()));
  const auto visibilities = direct_visibilities(render(disc, grid, {230e9}, 1), grid, baselines, 1);

  const double sigma = 0.5 / units::fwhm_per_sigma * units::arcsec;
  const auto along = u * std::sin(disc.position_angle) + v * std::cos(disc.position_angle);
  const auto across = (u * std::cos(disc.position_angle) - v * std::sin(disc.position_angle)) * std::cos(disc.inclination);
  const auto amplitude = disc.flux * (-2 * std::pow(units::pi * sigma, 2) * (along.square() + across.square())).exp();
  const auto phase = -2 * units::pi * (u * disc.offset_east + v * disc.offset_north) * units::arcsec;
  CHECK(relative_error(visibilities[0], torch::polar(amplitude, phase)) < 1e-10);
}

TEST_CASE("the samples of a disc are fine enough: twice as fine changes nothing", "[visibilities]") {
  const RingedDisc disc;
  const auto u = 6e5 * normal({100}, torch::kFloat64, 3), v = 6e5 * normal({100}, torch::kFloat64, 4);
  const auto baselines = Baselines::in_lambda(u, v);
  const auto visibilities_on = [&](const GridCoords& grid) {
    return direct_visibilities(render(disc, grid, {230e9}, 1), grid, baselines, 1);
  };
  const auto grid = sampling_grid(disc, std::max(baselines.max_abs_u(), baselines.max_abs_v()));
  const auto fine = visibilities_on(GridCoords(grid.cell_size() / 2, 2 * grid.npix()));
  CHECK((visibilities_on(grid) - fine).abs().max().item<double>() < 1e-7 * disc.flux);
}

TEST_CASE("a point source East and North has the phase of its offset", "[visibilities][quick]") {
  const GridCoords coords(0.05, 32);
  auto image = torch::zeros({1, 32, 32}, torch::kFloat64);
  const std::int64_t row = 20, column = 10;
  image[0][row][column] = 2 / coords.cell_area();
  const double east = coords.sky_x()[row][column].item<double>() * units::arcsec;
  const double north = coords.sky_y()[row][column].item<double>() * units::arcsec;
  REQUIRE(east > 0);
  REQUIRE(north > 0);
  const auto u = torch::tensor({1e5, 0.0, -3e5}, torch::kFloat64), v = torch::tensor({0.0, 1e5, 2e5}, torch::kFloat64);
  const auto baselines = Baselines::in_lambda(u, v);
  const auto expected = torch::polar(torch::full({3}, 2.0, torch::kFloat64), -2 * units::pi * (u * east + v * north));
  const auto points = direct_visibilities(image, coords, baselines, 1);
  CHECK(relative_error(points[0], expected) < 1e-12);
  CHECK(torch::imag(points[0])[0].item<double>() < 0);  // positive u, source in the East: the phase falls

  const auto squares = direct_visibilities(image, coords, baselines, 1, PixelShape::square);
  CHECK(relative_error(squares[0], expected * torch::sinc(u * coords.dl()) * torch::sinc(v * coords.dl())) < 1e-12);
}

TEST_CASE("visibilities are Hermitian, and their value at zero is the flux", "[visibilities][quick]") {
  const GridCoords coords(0.05, 32);
  const auto image = random_image(coords, 2, torch::kFloat64, 5);
  const auto u = 1e5 * normal({50}, torch::kFloat64, 6), v = 1e5 * normal({50}, torch::kFloat64, 7);
  const auto there = direct_visibilities(image, coords, Baselines::in_lambda(u, v), 2);
  const auto back = direct_visibilities(image, coords, Baselines::in_lambda(-u, -v), 2);
  CHECK(relative_error(back, there.conj().resolve_conj()) < 1e-13);
  const auto zero = torch::zeros({1}, torch::kFloat64);
  const auto fluxes = direct_visibilities(image, coords, Baselines::in_lambda(zero, zero), 2);
  CHECK(relative_error(torch::real(fluxes).flatten(), image.sum({1, 2}) * coords.cell_area()) < 1e-13);
}

TEST_CASE("each channel is seen at its own u, v and with its own image", "[visibilities][quick]") {
  const GridCoords coords(0.05, 32);
  const auto image = random_image(coords, 2, torch::kFloat64, 8);
  const auto x = 100 * normal({5000}, torch::kFloat64, 9), y = 100 * normal({5000}, torch::kFloat64, 10);
  const auto frequencies = torch::tensor({230e9, 345e9}, torch::kFloat64);
  const auto all = direct_visibilities(image, coords, Baselines::in_metres(x, y, frequencies), 2);
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const double scale = frequencies[channel].item<double>() / units::speed_of_light;
    const auto alone = direct_visibilities(image.narrow(0, channel, 1), coords, Baselines::in_lambda(scale * x, scale * y), 1);
    CHECK(relative_error(all.narrow(0, channel, 1), alone) < 1e-12);
  }
  CHECK_THROWS_AS(direct_visibilities(image, coords, Baselines::in_lambda(x, y), 3), ShapeError);
  CHECK_THROWS_AS(direct_visibilities(image, GridCoords(0.05, 30), Baselines::in_lambda(x, y), 2), ShapeError);
}

TEST_CASE("discs without meaning are refused", "[visibilities][quick]") {
  const auto refuses = [](auto change) {
    RingedDisc disc;
    change(disc);
    CHECK_THROWS_AS(disc.check(), ValueError);
  };
  CHECK_NOTHROW(RingedDisc().check());
  refuses([](RingedDisc& disc) { disc.flux = 0; });
  refuses([](RingedDisc& disc) { disc.flux = NAN; });
  refuses([](RingedDisc& disc) { disc.inclination = 90 * degree; });
  refuses([](RingedDisc& disc) { disc.position_angle = INFINITY; });
  refuses([](RingedDisc& disc) { disc.offset_east = NAN; });
  refuses([](RingedDisc& disc) { disc.rings[0].width = 0; });
  refuses([](RingedDisc& disc) { disc.rings[1].radius = -1; });
  refuses([](RingedDisc& disc) { disc.rings[1].brightness = -1; });
  refuses([](RingedDisc& disc) { disc.crescent->contrast = 0; });
  refuses([](RingedDisc& disc) { disc.crescent->azimuthal_width = 1 * degree; });
  refuses([](RingedDisc& disc) { disc.rings.clear(), disc.crescent.reset(); });
  CHECK_THROWS_AS(render(RingedDisc(), GridCoords(0.1, 16), {}), ValueError);
  CHECK_THROWS_AS(render(RingedDisc(), GridCoords(0.1, 16), {230e9}, 0), ValueError);
  CHECK_THROWS_AS(sampling_grid(RingedDisc(), 1e10), ValueError);
}
