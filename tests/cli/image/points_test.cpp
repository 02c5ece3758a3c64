// mpol image --points: point sources beside the image; mpol predict --points.
#include "catch.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <ATen/ops/full.h>
#include <ATen/ops/polar.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/components/point_component.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "../compare.h"
#include "../random.h"
#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

const PointComponent star{.east = 0.2137, .north = -0.1114, .flux = {2}};
constexpr double sigma = 0.1;
constexpr std::int64_t nvis = 3000;

/// A Gaussian of 1 Jy, 0.6" wide, and a star, that suit cells of 0.05" and 48 pixels.
std::string write_star(const std::filesystem::path& path, std::int64_t nchan = 1, double flux = 2) {
  const auto radius = uniform({nvis}, torch::kFloat64, 1).sqrt() * (0.2 / (0.05 * units::arcsec));
  const auto angle = uniform({nvis}, torch::kFloat64, 2) * (2 * units::pi);
  const auto u = (radius * angle.cos()).expand({nchan, nvis}).contiguous(),
             v = (radius * angle.sin()).expand({nchan, nvis}).contiguous();
  const double width = 0.6 / std::sqrt(8 * std::log(2.0)) * units::arcsec;
  const auto source =
      (radius.square() * (-2 * std::pow(units::pi * width, 2))).exp() + flux * point_visibilities(star, u[0], v[0]);
  const auto noise = sigma * std::sqrt(2.0) * normal({nchan, nvis}, torch::kComplexDouble, 3);
  Visibilities visibilities(Baselines::in_lambda(u, v), noise + source,
                            at::full({nchan, nvis}, 1 / (sigma * sigma), torch::kFloat64));
  io::write_npz(path, visibilities);
  return path.string();
}

Outcome run_points(const std::string& data, const std::filesystem::path& out, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"image", data, "-o", out.string(), "--cell-size", "0.05", "--npix", "48", "--overwrite"};
  words.insert(words.end(), more.begin(), more.end());
  return run_mpol_here(words);
}

json summary_in(const std::filesystem::path& out) { return json::parse(read_text(out / "summary.json")); }

void check_star(const json& source, double fluxes) {
  const double off =
      std::hypot(source["east_arcsec"].get<double>() - star.east, source["north_arcsec"].get<double>() - star.north);
  CHECK(off < 3 * source["place_error_arcsec"].get<double>());
  CHECK(source["flux_jy"].size() == static_cast<std::size_t>(fluxes));
  for (std::size_t c = 0; c < source["flux_jy"].size(); ++c) {
    const double error = source["flux_error_jy"][c].get<double>();
    CHECK(std::abs(source["flux_jy"][c].get<double>() - 2) < 3 * error);
    CHECK(error < 0.1);
  }
}

}  // namespace

TEST_CASE("a star beside a wider source is found, said, and out of the image", "[cli]") {
  const Scratch scratch;
  const auto data = write_star(scratch / "star.npz");
  const auto without = run_points(data, scratch / "without", {});
  INFO(without.err);
  REQUIRE(without.exit_code == 0);
  CHECK(without.err.find("--points auto fits it") != std::string::npos);
  const auto found = run_points(data, scratch / "found", {"--points", "auto"});
  INFO(found.err);
  REQUIRE(found.exit_code == 0);
  CHECK(found.out.find("the last of them new") != std::string::npos);
  CHECK(found.out.find("point 1: ") != std::string::npos);
  CHECK(found.err.find("sharper") == std::string::npos);
  const auto summary = summary_in(scratch / "found");
  REQUIRE(summary["points"]["sources"].size() == 1);
  CHECK(summary["points"]["converged"] == true);
  CHECK(summary["seconds"]["points"].is_number());
  check_star(summary["points"]["sources"][0], 1);
  const auto peak_of = [&](const char* name) {
    const auto residual = summary_in(scratch / name)["residual"];
    return residual["peak_jy_per_beam"][0].get<double>() / residual["noise_jy_per_beam"][0].get<double>();
  };
  CHECK(peak_of("found") < 5);
  CHECK(peak_of("without") > 2 * peak_of("found"));
  // The image is that of the wider source alone, as far as the star has not taken part of it.
  const auto alone = run_points(write_star(scratch / "alone.npz", 1, 0), scratch / "alone", {});
  REQUIRE(alone.exit_code == 0);
  const auto image_in = [&](const char* name) { return io::read_fits(scratch / name / "image.fits").cube; };
  CHECK(relative_error(image_in("found"), image_in("alone")) < 0.15);
  CHECK(relative_error(image_in("without"), image_in("alone")) > 1);
  CHECK(read_text(scratch / "found/report.html").find("Point sources") != std::string::npos);
  CHECK(read_text(scratch / "found/run.toml").find("points = \"auto\"") != std::string::npos);

  // points.csv and the image make the data, where the image alone does not.
  const auto csv = (scratch / "found/points.csv").string(), fits = (scratch / "found/image.fits").string();
  const auto predicted = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict", data, fits, "-o", (scratch / "p.npz").string(), "--overwrite", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto outcome = run_mpol_here(words);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out)["chi_squared_per_visibility"].get<double>();
  };
  CHECK(predicted({"--points", csv}) == Approx(summary["chi_squared_per_visibility"].get<double>()).epsilon(1e-4));
  CHECK(predicted({}) > 50);

  // Given its place, and about another middle of the image.
  const auto given = run_points(data, scratch / "given", {"--points=0.2,-0.1", "--center", "0.4,0.1"});
  INFO(given.err);
  REQUIRE(given.exit_code == 0);
  REQUIRE(summary_in(scratch / "given")["points"]["sources"].size() == 1);
  check_star(summary_in(scratch / "given")["points"]["sources"][0], 1);
}

TEST_CASE("point sources of a cube have a flux in each channel, and none is made up where nothing is", "[cli]") {
  const Scratch scratch;
  const auto cube = run_points(write_star(scratch / "cube.npz", 2), scratch / "cube", {"--points", "auto", "--mode", "cube"});
  INFO(cube.err);
  REQUIRE(cube.exit_code == 0);
  REQUIRE(summary_in(scratch / "cube")["points"]["sources"].size() == 1);
  check_star(summary_in(scratch / "cube")["points"]["sources"][0], 2);
  std::istringstream lines(read_text(scratch / "cube/points.csv"));
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) ++count;
  CHECK(count == 3);

  write_observation(scratch / "plain.npz", small_observation());
  const auto plain = run_mpol_here({"image", (scratch / "plain.npz").string(), "-o", (scratch / "plain").string(), "--cell-size",
                                    "0.1", "--npix", "32", "--points", "auto"});
  REQUIRE(plain.exit_code == 0);
  CHECK(plain.out.find("points: none is needed") != std::string::npos);
  CHECK(summary_in(scratch / "plain")["points"]["sources"].empty());
  run_mpol_here(
      {"image", (scratch / "plain.npz").string(), "-o", (scratch / "bare").string(), "--cell-size", "0.1", "--npix", "32"});
  CHECK(same(io::read_fits(scratch / "plain/image.fits").cube, io::read_fits(scratch / "bare/image.fits").cube));
}

TEST_CASE("what point sources cannot be is refused with what to do", "[cli]") {
  const Scratch scratch;
  const auto data = write_star(scratch / "star.npz");
  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    const auto outcome = run_points(data, scratch / "no", more);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.err.find(words) != std::string::npos);
  };
  refused({"--points", "here"}, "here");
  refused({"--points", "5,0"}, "outside of the field");
  refused({"--points", "auto", "--likelihood", "gridded"}, "--likelihood gridded");
  refused({"--points", "auto", "--likelihood", "loose", "--noise", "student"}, "Gaussian");
  refused({"--points", "auto", "--optimizer", "adam"}, "pogm");
  refused({"--points", "auto", "--fit-blocks", "weight"}, "--fit-blocks");
  std::ofstream(scratch / "wrong.csv") << "point,channel,east,north,place_error,flux,flux_error\n1,0,0.1,x,0,1,0\n";
  REQUIRE(run_points(data, scratch / "image", {"--epochs", "5"}).exit_code == 0);
  const auto wrong = run_mpol_here({"predict", data, (scratch / "image/image.fits").string(), "-o", (scratch / "p.npz").string(),
                                    "--points", (scratch / "wrong.csv").string()});
  CHECK(wrong.exit_code != 0);
  CHECK(wrong.err.find("line 2") != std::string::npos);
}
