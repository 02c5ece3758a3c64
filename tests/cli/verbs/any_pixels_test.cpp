// Models and masks whose pixels are oblong and turned.
#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "../python.h"
#include "compare.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double turned_east = 1.7, turned_north = -0.9, turned_sigma = 0.25;  // arcsec

/// A Gaussian of 1 Jy on baselines of 1e4 to 3e5 wavelengths.
Visibilities turned_source() {
  auto random = generator(5);
  const auto q = torch::exp(torch::rand({1200}, random, torch::kFloat64) * std::log(30.0)) * 1e4;
  const auto angle = torch::rand({1200}, random, torch::kFloat64) * 2 * units::pi;
  const auto u = q * angle.cos(), v = q * angle.sin();
  const auto data = (-2 * std::pow(units::pi * turned_sigma * units::arcsec, 2) * q.square()).exp() *
                    displacement_phase(u, v, torch::tensor({turned_east, turned_north}, torch::kFloat64));
  return {Baselines::in_lambda(u, v), data, torch::full({1200}, 1e4, torch::kFloat64)};
}

/// Writes model.fits, the source in pixels of 0.05" x 0.08" turned by 35 degrees, and mask.fits, 1 in its middle, with such
/// pixels.
void write_turned_files(const Scratch& scratch) {
  io::write_npz(scratch / "data.npz", turned_source());
  run_python(R"(
import sys
import numpy as np
from astropy.io import fits
from astropy.wcs import WCS
folder, east, north, sigma = sys.argv[1], *map(float, sys.argv[2:])
h = fits.Header(dict(CTYPE1='RA---SIN', CTYPE2='DEC--SIN', CDELT1=-0.05 / 3600, CDELT2=0.08 / 3600, CROTA2=35.0, CRPIX1=60.3,
                     CRPIX2=31.8, CRVAL1=0.0, CRVAL2=0.0, CUNIT1='deg', CUNIT2='deg', BUNIT='Jy/pixel'))
rows, columns = np.mgrid[0:90, 0:130]
ra, dec = WCS(h).wcs_pix2world(columns, rows, 0)
x, y = ((ra + 180) % 360 - 180) * 3600, dec * 3600
radius = np.hypot(x - east, y - north)
model = np.exp(-0.5 * (radius / sigma) ** 2)
fits.PrimaryHDU((model / model.sum()).astype('f8'), h).writeto(f'{folder}/model.fits')
h['BUNIT'] = ''
fits.PrimaryHDU((radius < 0.8).astype('f4'), h).writeto(f'{folder}/mask.fits')
)",
             {scratch.path().string(), std::to_string(turned_east), std::to_string(turned_north), std::to_string(turned_sigma)});
}

Outcome run_well(const std::vector<std::string>& arguments) {
  auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return run;
}

std::string joined_history(const std::filesystem::path& file) {
  std::string text;
  for (const auto& line : io::read_fits(file).history) text += line;
  return text;
}

}  // namespace

TEST_CASE("a model of oblong, turned pixels is predicted at its place with its flux", "[cli]") {
  const Scratch scratch;
  write_turned_files(scratch);
  const auto out = (scratch / "out.npz").string();
  const auto run = run_well({"predict", (scratch / "data.npz").string(), (scratch / "model.fits").string(), "-o", out, "--dtype",
                             "float64", "--verbose"});
  CHECK_THAT(run.out + run.err, ContainsSubstring("0.05 x 0.08 arcsec") && ContainsSubstring("35 deg") &&
                                    ContainsSubstring("reprojected by exact area"));
  const auto given = turned_source();
  const auto predicted = io::read_npz_array(out, "model")[0];
  CHECK(relative_error(predicted, given.data()[0]) < 0.02);  // pixels are squares, in two shapes one after the other
}

TEST_CASE("masks and starts of such pixels go to their place, and HISTORY says so", "[cli]") {
  const Scratch scratch;
  write_turned_files(scratch);
  const auto out = scratch / "out";
  run_well({"image", (scratch / "data.npz").string(), "-o", out.string(), "--cell-size", "0.1", "--npix", "64", "--mask",
            (scratch / "mask.fits").string(), "--start", (scratch / "model.fits").string(), "--optimizer", "adam", "--epochs",
            "30", "--no-hann"});
  const auto image = io::read_fits(out / "image.fits");
  const GridCoords coords(0.1, 64);
  const auto distance = ((coords.sky_x() - turned_east).square() + (coords.sky_y() - turned_north).square()).sqrt();
  const auto shines = image.cube[0] > 0;
  CHECK(shines.index({distance < 0.72}).all().item<bool>());
  CHECK_FALSE(shines.index({distance > 0.88}).any().item<bool>());
  const auto history = joined_history(out / "image.fits");
  CHECK_THAT(history, ContainsSubstring("--mask: pixels of 0.05 x 0.08 arcsec") && ContainsSubstring("--start: pixels of") &&
                          ContainsSubstring("exact area"));
}

TEST_CASE("verbs that write an image of such pixels say how it was reprojected", "[cli]") {
  const Scratch scratch;
  write_turned_files(scratch);
  const auto model = (scratch / "model.fits").string(), out = (scratch / "smooth").string();
  run_well({"convolve", model, "-o", out, "--bmaj", "0.5", "--unit", "Jy/arcsec2"});
  const auto image = io::read_fits(out + "/convolved.fits");
  CHECK(image.cell_size == Approx(0.05).epsilon(1e-6));
  CHECK((image.cube.sum() * image.cell_size * image.cell_size).item<double>() == Approx(1).epsilon(2e-3));
  CHECK_THAT(joined_history(out + "/convolved.fits"), ContainsSubstring("reprojected by exact area"));
  CHECK_THAT(run_well({"show", model, "--format", "text", "--width", "30"}).out, ContainsSubstring("as they lie in the file"));
}
