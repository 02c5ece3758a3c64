// Images that are not about the phase centre: --center, and what reads them again.
#include "catch.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "../python.h"
#include "compare.h"
#include "observation.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

constexpr double source_east = 11.9, source_north = -7.3;  // arcsec, cells of 0.1"

/// A Gaussian of 1 Jy and sigma 0.25" far from the phase centre, on baselines of 1.2e4 to 6e5 wavelengths.
Visibilities distant_source(std::int64_t nvis = 1500, double noise = 0.02) {
  auto random = generator(11);
  const auto q = torch::exp(torch::rand({nvis}, random, torch::kFloat64) * std::log(50.0)) * 1.2e4;
  const auto angle = torch::rand({nvis}, random, torch::kFloat64) * 2 * units::pi;
  const auto u = q * angle.cos(), v = q * angle.sin();
  const double sigma = 0.25 * units::arcsec;
  auto data = (-2 * std::pow(units::pi * sigma, 2) * q.square()).exp() *
              displacement_phase(u, v, torch::tensor({source_east, source_north}, torch::kFloat64));
  data =
      data + noise * torch::complex(torch::randn({nvis}, random, torch::kFloat64), torch::randn({nvis}, random, torch::kFloat64));
  Visibilities visibilities(Baselines::in_lambda(u, v), data, at::full({nvis}, 1 / (noise * noise), torch::kFloat64));
  Observation observation;
  observation.right_ascension = 2.9;
  observation.declination = -0.6;
  visibilities.set_observation(observation);
  return visibilities;
}

std::string write_source(const Scratch& scratch) {
  const auto path = scratch / "distant.npz";
  io::write_npz(path, distant_source());
  return path.string();
}

Outcome succeed(const std::vector<std::string>& arguments) {
  auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return run;
}

json summary_of(const std::filesystem::path& out) { return json::parse(read_text(out / "summary.json")); }

/// Offsets of the flux's middle from the phase centre as a file says them: East, North, arcsec.
SkyOffset middle_of_flux(const io::FitsImage& image) {
  const auto sky = image.cube[0];
  const double flux = sky.sum().item<double>();
  const auto rows = torch::arange(sky.size(0), torch::kFloat64), columns = torch::arange(sky.size(1), torch::kFloat64);
  const double row = (sky.sum(1) * rows).sum().item<double>() / flux, column = (sky.sum(0) * columns).sum().item<double>() / flux;
  return {(image.reference_column - column) * image.cell_size, (row - image.reference_row) * image.cell_size};
}

const std::vector<std::string> small_field = {"--cell-size", "0.1", "--npix", "48", "--center", "11.93,-7.28"};
const std::vector<std::string> quick_fit = {"--optimizer", "adam", "--epochs", "300", "--start", "dirty"};

std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::vector<std::string>>& more) {
  for (const auto& list : more) words.insert(words.end(), list.begin(), list.end());
  return words;
}

}  // namespace

TEST_CASE("a dirty image about another place is that part of the one about the phase centre", "[cli]") {
  const Scratch scratch;
  const auto data = write_source(scratch), whole = (scratch / "whole").string(), part = (scratch / "part").string();
  const std::vector<std::string> natural = {"--weighting", "natural"};
  succeed(joined({"dirty", data, "-o", whole, "--cell-size", "0.1", "--npix", "320"}, {natural}));
  succeed(joined({"dirty", data, "-o", part}, {small_field, natural}));
  const auto a = io::read_fits(whole + "/dirty.fits"), b = io::read_fits(part + "/dirty.fits");
  // To whole cells: 119 to the East, 73 to the South.
  CHECK(b.reference_column == 23 + 119);
  CHECK(b.reference_row == 24 + 73);
  CHECK(a.observation.right_ascension == b.observation.right_ascension);
  const auto same_part = a.cube.narrow(1, 160 - 73 - 24, 48).narrow(2, 159 - 119 - 23, 48);
  CHECK(relative_error(b.cube, same_part) < 1e-5);
  CHECK(summary_of(part)["center_arcsec"][0].get<double>() == Approx(11.9));
  CHECK(summary_of(part)["center_arcsec"][1].get<double>() == Approx(-7.3));
  CHECK(summary_of(whole)["center_arcsec"] == json({0.0, 0.0}));
}

TEST_CASE("a fit about the flux says where it is on the sky, and predicts the data about their phase centre", "[cli]") {
  const Scratch scratch;
  const auto data = write_source(scratch), out = (scratch / "out").string(), predicted = (scratch / "predicted.npz").string();
  succeed(joined({"image", data, "-o", out}, {small_field, quick_fit}));
  const auto image = io::read_fits(out + "/image.fits");
  const auto middle = middle_of_flux(image);
  CHECK(middle.east == Approx(source_east).margin(0.03));
  CHECK(middle.north == Approx(source_north).margin(0.03));
  const auto run = succeed({"predict", data, out + "/image.fits", "-o", predicted, "--dtype", "float64", "--json"});
  const auto summary = summary_of(out);
  CHECK_THAT(json::parse(run.out)["chi_squared"].get<double>(), WithinRel(summary["chi_squared"].get<double>(), 1e-3));
  CHECK(summary["reduced_chi_squared"].get<double>() < 1.3);
  const auto model = io::read_npz_array(predicted, "model"), residual = io::read_npz_array(predicted, "residual");
  CHECK(relative_error(model + residual, distant_source().data().flatten().unsqueeze(0)) < 1e-12);
  CHECK(relative_error(model, distant_source(1500, 1e-9).data()) < 0.05);
}

TEST_CASE("where the program chooses the pixels it chooses the place of flux that lies far off", "[cli]") {
  const Scratch scratch;
  const auto data = write_source(scratch), out = (scratch / "out").string();
  const auto choices = json::parse(succeed({"image", data, "--dry-run", "--json"}).out)["choices"];
  std::map<std::string, std::string> chosen;
  for (const auto& choice : choices) chosen[choice["option"]] = choice["value"];
  REQUIRE(chosen.contains("center"));
  double east = 0, north = 0;
  REQUIRE(std::sscanf(chosen["center"].c_str(), "%lf,%lf", &east, &north) == 2);
  CHECK(east == Approx(source_east).margin(1));
  CHECK(north == Approx(source_north).margin(1));
  const auto about = json::parse(succeed({"image", data, "--dry-run", "--json", "--center", "0,0"}).out)["choices"];
  for (const auto& choice : about) {
    CHECK(choice["option"] != "center");
    if (choice["option"] == "npix") CHECK(std::stoi(choice["value"].get<std::string>()) > 1.9 * std::stoi(chosen["npix"]));
  }
  // Nobody who says how many pixels there are is moved.
  for (const auto& choice : json::parse(succeed({"image", data, "--dry-run", "--json", "--npix", "64"}).out)["choices"])
    CHECK(choice["option"] != "center");
  const auto inspected = json::parse(succeed({"inspect", data, "--json"}).out)["suggestion"];
  CHECK(inspected["npix"] == std::stoi(chosen["npix"]));
  CHECK(inspected["center_arcsec"][0].get<double>() == Approx(east));
}

TEST_CASE("a fit with a center is repeated from its run.toml, and resumed", "[cli]") {
  const Scratch scratch;
  const auto data = write_source(scratch);
  const auto out = (scratch / "out").string(), again = (scratch / "again").string(), resumed = (scratch / "resumed").string();
  const std::vector<std::string> short_fit = {"--optimizer", "adam", "--epochs", "12", "--threads", "1"};
  succeed(joined({"image", data, "-o", out}, {small_field, short_fit}));
  succeed({"image", "--config", out + "/run.toml", "-o", again});
  CHECK(same(io::read_fits(out + "/image.fits").cube, io::read_fits(again + "/image.fits").cube));
  CHECK(io::read_fits(again + "/image.fits").reference_column == 142);
  auto shorter = short_fit;
  shorter[3] = "5";
  succeed(joined({"image", data, "-o", resumed}, {small_field, shorter}));
  succeed(joined({"image", data, "-o", resumed, "--resume"}, {small_field, short_fit}));
  CHECK(same(io::read_fits(out + "/image.fits").cube, io::read_fits(resumed + "/image.fits").cube));
  auto elsewhere = small_field;
  elsewhere.back() = "11,-7";
  const auto refused = run_mpol_here(joined({"image", data, "-o", resumed, "--resume"}, {elsewhere, short_fit}));
  CHECK(refused.exit_code != 0);
  CHECK(refused.error_names("center"));
}

TEST_CASE("starts and masks of any grid go to their place on the sky", "[cli]") {
  const Scratch scratch;
  const auto data = write_source(scratch), out = (scratch / "out").string();
  const GridCoords grid(0.1, 16);
  auto header = io::FitsOptions().observation(distant_source().observation());
  header.observation().center = {11.55, -7.25};
  io::write_fits(scratch / "mask.fits", at::ones({16, 16}, torch::kFloat64), grid, header);
  succeed(joined({"image", data, "-o", out, "--mask", (scratch / "mask.fits").string(), "--no-hann"}, {small_field, quick_fit}));
  const auto image = io::read_fits(out + "/image.fits");
  const auto shines = image.cube[0].sum(0) > 0;
  const auto first = shines.to(torch::kInt).argmax().item<std::int64_t>();
  CHECK(shines.sum().item<std::int64_t>() >= 16);
  // The mask ends at 11.55 + 7.5 cells: that pixel is half covered.
  const double east = (image.reference_column - static_cast<double>(first)) * 0.1;
  CHECK(east == Approx(12.25).margin(0.06));
}

TEST_CASE("verbs that read an image with a center keep its place", "[cli]") {
  const Scratch scratch;
  const GridCoords grid(0.1, 32);
  auto header = io::FitsOptions().observation(distant_source().observation());
  header.observation().center = {source_east, source_north};
  auto sky = at::zeros({32, 32}, torch::kFloat64);
  sky[16][15] = 100;
  const auto file = (scratch / "point.fits").string(), out = (scratch / "smooth").string();
  io::write_fits(file, sky, grid, header);
  succeed({"convolve", file, "-o", out, "--bmaj", "0.5", "--bmin", "0.4", "--bpa", "10"});
  const auto convolved = io::read_fits(out + "/convolved.fits");
  CHECK(convolved.cube.sizes() == at::IntArrayRef({1, 32, 32}));
  CHECK(middle_of_flux(convolved).east == Approx(source_east).margin(1e-3));
  CHECK(middle_of_flux(convolved).north == Approx(source_north).margin(1e-3));
  succeed({"profile", file, "-o", (scratch / "rings").string(), "--offset-east", "11.9", "--offset-north", "-7.3"});
  const auto profile = read_text(scratch / "rings" / "profile.csv");
  CHECK(profile.find("nan") == std::string::npos);
}

TEST_CASE("a center that is none is refused in one line", "[cli][quick]") {
  const Scratch scratch;
  const auto data = write_source(scratch);
  for (const auto* text : {"1", "1,2,3", "a,b", "nan,0", "1,", ",1", "1e9,0", ""}) {
    const auto run = run_mpol_here({"image", data, "-o", (scratch / "out").string(), "--center", text});
    INFO(text << ": " << run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names("center"));
  }
}

TEST_CASE("predict takes models of any number and place of pixels with their flux", "[cli]") {
  const Scratch scratch;
  const auto data = write_source(scratch), out = (scratch / "out.npz").string(), model = (scratch / "model.fits").string();
  // 1 Jy in one of 21 rows and 34 columns, whose reference lies between pixels and outside of them.
  run_python(R"(
import sys
import numpy as np
from astropy.io import fits
pixels = np.zeros((21, 34), np.float32)
pixels[9, 14] = 1
header = fits.Header(dict(BUNIT='Jy/pixel', CTYPE1='RA---SIN', CTYPE2='DEC--SIN', CDELT1=-0.08 / 3600, CDELT2=0.08 / 3600, CRPIX1=40.3, CRPIX2=-11.25,
                          CRVAL1=np.rad2deg(2.9), CRVAL2=np.rad2deg(-0.6), CUNIT1='deg', CUNIT2='deg'))
fits.PrimaryHDU(pixels, header).writeto(sys.argv[1])
)",
             {model});
  succeed({"predict", data, model, "-o", out, "--dtype", "float64"});
  const double east = (40.3 - 15) * 0.08, north = (10 + 11.25) * 0.08;
  const auto given = distant_source();
  const auto [u, v] = given.baselines().channel(0);
  const auto expected = displacement_phase(u, v, torch::tensor({east, north}, torch::kFloat64));
  CHECK(relative_error(io::read_npz_array(out, "model")[0], expected) < 1e-8);
}

TEST_CASE("HISTORY says where a start or a mask was reprojected, and nothing of those that fit", "[cli]") {
  const Scratch scratch;
  const auto data = write_source(scratch);
  const auto header = io::FitsOptions().observation(distant_source().observation());
  auto shifted = header;
  shifted.observation().center = {11.9, -7.3};
  io::write_fits(scratch / "same.fits", at::ones({40, 40}, torch::kFloat64), GridCoords(0.1, 40), shifted);
  io::write_fits(scratch / "finer.fits", at::ones({400, 400}, torch::kFloat64), GridCoords(0.08, 400), header);
  const auto history = [&](const std::string& mask, const std::string& name) {
    const auto out = (scratch / name).string();
    succeed(joined({"image", data, "-o", out, "--mask", (scratch / mask).string(), "--optimizer", "adam", "--epochs", "3"},
                   {small_field}));
    std::string text;
    for (const auto& line : io::read_fits(out + "/image.fits").history) text += line + "\n";
    return text;
  };
  CHECK(history("same.fits", "a").find("reprojected") == std::string::npos);
  CHECK(history("finer.fits", "b").find("--mask: reprojected by exact area from pixels of 0.08 arcsec") != std::string::npos);
}
