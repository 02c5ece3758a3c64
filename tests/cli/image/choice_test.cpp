#include "catch.h"

#include <filesystem>

#include <ATen/ops/hypot.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

std::string bundled(const std::string& name) { return (std::filesystem::path(MPOL_DATA_DIR) / name).string(); }

/// Flux of the first channel within a radius of a place, Jy.
double flux_within(const mpol::io::FitsImage& image, double east, double north, double radius) {
  const mpol::GridCoords coords(image.cell_size, image.cube.size(-1));
  const auto inside = at::hypot(coords.sky_x() - east, coords.sky_y() - north) < radius;
  return (image.cube[0] * inside).sum().item<double>();
}

}  // namespace

TEST_CASE("with nothing said the simulated disc has its flux and its shape", "[cli]") {
  const Scratch scratch;
  const auto out = scratch / "disc";
  const auto run = run_mpol({"image", bundled("simulated_disc.npz"), "-o", out.string()});
  INFO(run.out << run.err);
  REQUIRE(run.exit_code == 0);
  const auto summary = json::parse(read_text(out / "summary.json"));
  const auto truth = mpol::io::read_fits(bundled("simulated_disc_truth.fits")), image = mpol::io::read_fits(out / "image.fits");
  CHECK(summary["converged"] == true);
  CHECK(summary["flux_jy"][0].get<double>() == Approx(truth.cube[0].sum().item<double>()).epsilon(0.05));
  // In quarters and rings about the phase centre, each a few beams large.
  for (const double radius : {0.3, 0.6, 0.9})
    CHECK(flux_within(image, 0, 0, radius) == Approx(flux_within(truth, 0, 0, radius)).margin(0.012));
  for (const double east : {-0.5, 0.5}) {
    for (const double north : {-0.5, 0.5})
      CHECK(flux_within(image, east, north, 0.35) == Approx(flux_within(truth, east, north, 0.35)).margin(0.01));
  }

  // What was chosen is said, and is what run.toml repeats.
  CHECK(run.out.find("--cell-size 0.03: ") != std::string::npos);
  REQUIRE(summary["choices"].size() >= 4);
  CHECK(summary["choices"][0]["option"] == "cell-size");
  CHECK(summary["choices"][0]["value"] == "0.03");
  CHECK(summary["choices"][1]["option"] == "npix");
  for (const auto& choice : summary["choices"]) CHECK_FALSE(choice["reason"].get<std::string>().empty());
  const auto settings = read_text(out / "run.toml");
  CHECK(settings.find("\ncell-size = 0.03\n") != std::string::npos);
  CHECK(settings.find("\nnpix = " + summary["choices"][1]["value"].get<std::string>() + "\n") != std::string::npos);
}

TEST_CASE("with nothing said the real observation shows its disc", "[cli]") {
  const Scratch scratch;
  const auto run = run_mpol({"image", bundled("hd142527_band9.npz"), "-o", (scratch / "hd").string(), "--quiet"});
  REQUIRE(run.exit_code == 0);
  const auto image = mpol::io::read_fits(scratch / "hd" / "image.fits");
  const double all = image.cube.sum().item<double>(), disc = flux_within(image, 0, 0, 1.7);
  CHECK(disc == Approx(5.5).margin(1.0));
  CHECK(disc > 0.7 * all);
  // The ring is brighter to the North than to the South, and has a hole.
  CHECK(flux_within(image, 0, 1.0, 0.4) > 2 * flux_within(image, 0, -1.0, 0.4));
  CHECK(flux_within(image, 0, 0, 0.3) < 0.05 * disc);
}

TEST_CASE("a dry run prints the choices and writes nothing", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol_here({"image", data, "--dry-run"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  for (const auto* option : {"--cell-size ", "--npix ", "--sparsity ", "--tv ", "--optimizer ", "--noise "})
    CHECK(run.out.find(option) != std::string::npos);
  const auto as_json = json::parse(run_mpol_here({"crossval", data, "--dry-run", "--json"}).out);
  CHECK(as_json["choices"].size() >= 6);
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"vis.npz"});
  CHECK(run_mpol_here({"image", data, "-o", (scratch / "out").string(), "--dry-run"}).exit_code == 2);
}

TEST_CASE("what is given of the grid is kept, and auto asks for the rest", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto chosen = [&](const std::vector<std::string>& grid) {
    std::vector<std::string> arguments = {"dirty", data, "-o", (scratch / "out").string(), "--overwrite"};
    arguments.insert(arguments.end(), grid.begin(), grid.end());
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return json::parse(read_text(scratch / "out" / "summary.json"))["choices"];
  };
  CHECK(chosen({}).size() == 2);
  CHECK(chosen({"--cell-size", "auto", "--npix", "auto"}) == chosen({}));
  const auto pixels = chosen({"--cell-size", "0.1"});
  REQUIRE(pixels.size() == 1);
  CHECK(pixels[0]["option"] == "npix");
  const auto cells = chosen({"--npix", "32"});
  REQUIRE(cells.size() == 1);
  CHECK(cells[0]["option"] == "cell-size");
  CHECK(chosen({"--npix", "32", "--cell-size", "0.1"}).empty());
}

TEST_CASE("data without a baseline of any length leave no choice", "[cli][quick]") {
  const Scratch scratch;
  auto arrays = small_observation();
  arrays["uu"] = 0 * arrays["uu"];
  arrays["vv"] = 0 * arrays["vv"];
  const auto run = run_mpol_here({"image", write_observation(scratch / "vis.npz", arrays), "-o", (scratch / "out").string()});
  CHECK(run.exit_code == 1);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names("--cell-size"));
}
