// Units, frames and numbers of `mpol image` and its neighbours.
#include "catch.h"

#include <cmath>

#include <ATen/ops/full_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>

#include "../python.h"
#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

/// The flux of the image that a fit starts from: a single epoch does not move it.
double flux_of_start(const std::string& data, const std::filesystem::path& out, const std::vector<std::string>& more = {}) {
  auto arguments = short_run(data, out, {"--epochs", "1", "--learning-rate", "1e-9", "--json", "--overwrite"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return json::parse(run.out)["flux_jy"][0].get<double>();
}

std::map<std::string, Tensor> at_declination(std::map<std::string, Tensor> arrays, double degrees) {
  arrays["declination"] = at::scalar_tensor(degrees * mpol::units::degree, torch::kFloat64);
  return arrays;
}

/// Writes an image of 32 x 32 pixels of 0.1" whose phase centre is at that declination.
std::string write_image(const std::filesystem::path& path, const Tensor& sky, double declination) {
  mpol::Observation observation;
  observation.declination = declination * mpol::units::degree;
  mpol::io::write_fits(path, sky, mpol::GridCoords(0.1, 32), mpol::io::FitsOptions().observation(observation));
  return path.string();
}

}  // namespace

TEST_CASE("the default start is as bright as the data say, whatever their units and field", "[cli]") {
  const Scratch scratch;
  const auto arrays = small_observation();
  const auto own = write_observation(scratch / "own.npz", arrays);
  const double flux = flux_of_start(own, scratch / "out");
  const double truth = std::abs(arrays.at("data")[arrays.at("uu").square().add(arrays.at("vv").square()).argmin()]
                                    .item<c10::complex<double>>());  // at the shortest baseline
  CHECK(flux > 0.5 * truth);
  CHECK(flux < 2 * truth);
  const auto run = run_mpol_here(short_run(own, scratch / "again", {"--start", "auto"}));
  CHECK(read_text(scratch / "again" / "run.toml").find("start = \"auto\"") != std::string::npos);

  auto brighter = arrays;
  brighter["data"] = arrays.at("data") * 1000;
  brighter["weight"] = arrays.at("weight") / 1e6;
  CHECK_THAT(flux_of_start(write_observation(scratch / "brighter.npz", brighter), scratch / "out"), WithinRel(1000 * flux, 1e-6));

  auto wider = arrays;  // the same sky sixty times as large
  wider["uu"] = arrays.at("uu") / 60;
  wider["vv"] = arrays.at("vv") / 60;
  const auto wide = write_observation(scratch / "wider.npz", wider);
  CHECK_THAT(flux_of_start(wide, scratch / "out", {"--cell-size", "6"}), WithinRel(flux, 1e-6));
  CHECK(flux_of_start(wide, scratch / "out", {"--cell-size", "6", "--start", "base:-3"}) > 100 * truth);

  auto dark = arrays;
  dark["data"] = at::zeros_like(arrays.at("data"));
  const double noise = 1 / std::sqrt(arrays.at("weight").to(torch::kFloat64).sum().item<double>());
  CHECK_THAT(flux_of_start(write_observation(scratch / "dark.npz", dark), scratch / "out"), WithinRel(noise, 0.1));
}

TEST_CASE("a mask is taken at its reference pixel, and its blanks are 0", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  // As CASA writes it: the phase centre is pixel 17 of 32, counted from 1. One pixel there, blanks about it.
  run_python(
      "import sys\nimport numpy as np\nfrom astropy.io import fits\nmask = np.full((32, 32), np.nan)\nmask[16, 16] = 1\n"
      "mask[20, 16] = 0\nhdu = fits.PrimaryHDU(mask.astype('f4'))\n"
      "hdu.header.update(CTYPE1='RA---SIN', CTYPE2='DEC--SIN', CDELT1=-0.1 / 3600, CDELT2=0.1 / 3600, CRPIX1=17., CRPIX2=17.)\n"
      "hdu.writeto(sys.argv[1])\n",
      {(scratch / "mask.fits").string()});
  const auto run = run_mpol_here(short_run(data, scratch / "out", {"--mask", (scratch / "mask.fits").string()}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto image = mpol::io::read_fits(scratch / "out" / "image.fits").cube[0];
  CHECK((image != 0).sum().item<std::int64_t>() == 9);         // one base pixel, convolved
  CHECK(image.argmax().item<std::int64_t>() == 16 * 32 + 15);  // our phase centre

  auto elsewhere = torch::zeros({32, 32}, torch::kFloat64);
  mpol::io::write_fits(scratch / "nothing.fits", elsewhere, mpol::GridCoords(0.1, 32));
  const auto refused = run_mpol_here(short_run(data, scratch / "refused", {"--mask", (scratch / "nothing.fits").string()}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_names("is 0 everywhere"));
}

TEST_CASE("a mask on other cells goes by the larger part of each pixel", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  auto coarse = torch::zeros({16, 16}, torch::kFloat64);
  coarse[9][6] = 1;  // rows 18, 19 and columns 12, 13 of half the cell size
  mpol::io::write_fits(scratch / "coarse.fits", coarse, mpol::GridCoords(0.2, 16));
  REQUIRE(run_mpol_here(short_run(data, scratch / "out", {"--mask", (scratch / "coarse.fits").string()})).exit_code == 0);
  const auto image = mpol::io::read_fits(scratch / "out" / "image.fits").cube[0];
  const auto lit = (image != 0).nonzero();
  CHECK(lit.size(0) >= 1);
  CHECK(lit.size(0) <= 25);  // at most three by three base pixels, convolved
  CHECK((lit.select(1, 0) >= 16).logical_and(lit.select(1, 0) <= 20).all().item<bool>());
  CHECK((lit.select(1, 1) >= 11).logical_and(lit.select(1, 1) <= 15).all().item<bool>());
}

TEST_CASE("images of another phase centre than the data's are taken with a warning", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", at_declination(small_observation(), -30));
  const auto sky = torch::ones({32, 32}, torch::kFloat64);
  const auto here = write_image(scratch / "here.fits", sky, -30 + 1e-9), there = write_image(scratch / "there.fits", sky, 40);
  const auto warns = [](const std::vector<std::string>& arguments) {
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    CHECK(run.exit_code == 0);
    return run.error_names("Dec 40 degrees") && run.error_names("phase centre");
  };
  CHECK(warns({"predict", data, there, "-o", (scratch / "a.npz").string()}));
  CHECK_FALSE(warns({"predict", data, here, "-o", (scratch / "b.npz").string()}));
  CHECK(warns(short_run(data, scratch / "c", {"--start", there})));
  CHECK_FALSE(warns(short_run(data, scratch / "d", {"--start", here})));
  CHECK(warns(short_run(data, scratch / "e", {"--mask", there})));
  CHECK(warns({"compare", here, there, "-o", (scratch / "f").string()}));
  CHECK_FALSE(warns({"compare", here, here, "-o", (scratch / "g").string()}));
  // Unknown on one side: there is nothing to compare.
  const auto unknown = write_observation(scratch / "unknown.npz", small_observation());
  CHECK_FALSE(warns({"predict", unknown, there, "-o", (scratch / "h.npz").string()}));
}

TEST_CASE("each file of --more-data is checked for its unit", "[cli]") {
  const Scratch scratch;
  const auto arrays = small_observation();
  auto kilo = arrays;
  kilo["uu"] = arrays.at("uu") / 1000;
  kilo["vv"] = arrays.at("vv") / 1000;
  const auto a = write_observation(scratch / "a.npz", arrays), b = write_observation(scratch / "kilo.npz", kilo);
  for (const auto& [first, second] : {std::pair(a, b), std::pair(b, a)}) {
    for (const auto* verb : {"image", "dirty", "weights"}) {
      INFO(verb);
      const auto run = run_mpol_here(
          {verb, first, "--more-data", second, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32"});
      CHECK(run.exit_code == 1);
      CHECK(run.error_names("kilo.npz: the largest |u| or |v|"));
      CHECK(run.error_names("which fits"));
    }
  }
}

TEST_CASE("data of the other sign are imaged as they should with --conjugate", "[cli]") {
  const Scratch scratch;
  const auto arrays = small_observation();
  auto conjugated = arrays;
  conjugated["data"] = arrays.at("data").conj().resolve_conj();
  const auto right = write_observation(scratch / "right.npz", arrays),
             wrong = write_observation(scratch / "wrong.npz", conjugated);
  REQUIRE(run_mpol_here(short_run(right, scratch / "right")).exit_code == 0);
  REQUIRE(run_mpol_here(short_run(wrong, scratch / "turned")).exit_code == 0);
  REQUIRE(run_mpol_here(short_run(wrong, scratch / "mended", {"--conjugate"})).exit_code == 0);
  CHECK(read_text(scratch / "mended" / "history.csv") == read_text(scratch / "right" / "history.csv"));
  CHECK(read_text(scratch / "turned" / "history.csv") != read_text(scratch / "right" / "history.csv"));
  CHECK(read_text(scratch / "mended" / "run.toml").find("conjugate = true") != std::string::npos);
}

TEST_CASE("weights that the dtype cannot hold are refused with their value and the remedy", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation();
  arrays["weight"] = at::full_like(arrays.at("weight"), 1e-50, torch::kFloat64);
  const auto data = write_observation(scratch / "faint.npz", arrays);
  const auto run = run_mpol_here(short_run(data, scratch / "out", {"--dtype", "float32"}));
  CHECK(run.exit_code == 1);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names("1e-50"));
  CHECK(run.error_names("float64"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
  CHECK(run_mpol_here(short_run(data, scratch / "precise", {"--dtype", "float64"})).exit_code == 0);
  arrays["weight"].fill_(1e-310);
  const auto vanishing = write_observation(scratch / "vanishing.npz", arrays);
  for (const auto* verb : {"dirty", "weights"}) {
    const auto refused =
        run_mpol_here({verb, vanishing, "-o", (scratch / "none").string(), "--cell-size", "0.1", "--npix", "32"});
    CHECK(refused.exit_code == 1);
    CHECK(refused.error_names("1e-310"));
  }
}

TEST_CASE("paths that are not UTF-8 are refused where run.toml would hold them, and read elsewhere", "[cli]") {
  const Scratch scratch;
  const auto latin = write_observation(scratch / "caf\xe9.npz", small_observation());
  const auto run = run_mpol_here(short_run(latin, scratch / "out"));
  INFO(run.err);
  CHECK(run.exit_code == 2);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names("is not UTF-8"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out"));

  const auto sky = torch::ones({32, 32}, torch::kFloat64);
  const auto image = write_image(scratch / "\xe9toile.fits", sky, -30);
  const auto compared = run_mpol_here({"compare", image, image, "-o", (scratch / "same").string(), "--json"});
  INFO(compared.err);
  CHECK(compared.exit_code == 0);
  CHECK(json::parse(compared.out)["channels"][0]["correlation"] == 1);
}

TEST_CASE("UTF-8 is what it is", "[cli][quick]") {
  for (const auto* good : {"", "plain", "caf\xc3\xa9", "\xe2\x80\xa6", "\xf0\x9f\x94\xad", "\x7f"})
    CHECK(mpol::cli::is_utf8(good));
  for (const auto* bad :
       {"caf\xe9", "\xc3", "\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xf4\x90\x80\x80"})
    CHECK_FALSE(mpol::cli::is_utf8(bad));
}
