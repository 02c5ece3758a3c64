#include "catch.h"

#include <cmath>
#include <cstdio>
#include <sstream>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/core/units.h>

#include "observation.h"
#include "program.h"
#include "verb_runs.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

const DiscGeometry flat_disc{
    .inclination = 48 * units::degree, .position_angle = 130 * units::degree, .offset_east = 0.15, .offset_north = -0.08};

/// A Gaussian disc without noise at the baselines of the small observation.
std::map<std::string, Tensor> disc_observation(const DiscModel& disc) {
  auto arrays = small_observation(1, 1500);
  arrays["data"] = disc_visibilities(disc, arrays["uu"].to(torch::kFloat64), arrays["vv"].to(torch::kFloat64));
  return arrays;
}

const DiscModel gaussian_disc{.shape = DiscShape::gaussian, .flux = 0.5, .size = 0.7, .width = 0, .geometry = flat_disc};

json geometry_of(const std::vector<std::string>& arguments, const std::filesystem::path& out) {
  return summary_of("geometry", arguments, out);
}

}  // namespace

TEST_CASE("geometry finds how a disc lies on the sky, and writes what it saw", "[cli]") {
  const Scratch scratch;
  const std::string model = GENERATE("free", "gaussian");
  const auto data = write_observation(scratch / "vis.npz", disc_observation(gaussian_disc));
  const auto summary = geometry_of({data, "--model", model, "--bins", "20"}, scratch / "out");
  CHECK(summary["model"] == model);
  CHECK(summary["inclination_deg"].get<double>() == Approx(48).margin(0.1));
  CHECK(summary["position_angle_deg"].get<double>() == Approx(130).margin(0.1));
  CHECK(summary["offset_east_arcsec"].get<double>() == Approx(0.15).margin(1e-3));
  CHECK(summary["offset_north_arcsec"].get<double>() == Approx(-0.08).margin(1e-3));
  CHECK(summary["flux_jy"].get<double>() == Approx(0.5).epsilon(0.01));
  CHECK(summary["inclination_error_deg"].get<double>() > 0);
  CHECK(summary["inclination_found"] == true);
  CHECK(summary["converged"] == true);
  CHECK(summary["size_arcsec"].is_null() == (model == "free"));
  if (model == "gaussian") CHECK(summary["size_arcsec"].get<double>() == Approx(0.7).epsilon(1e-4));
  CHECK(summary["correlation"]["matrix"][1][1].get<double>() == Approx(1));
  CHECK(summary["n_visibilities"] == 1500);

  std::istringstream table(read_text(scratch / "out" / "geometry.csv"));
  std::string line;
  std::getline(table, line);
  CHECK(line == "q_lambda,real,imag,error,model,samples");
  int rows = 0;
  long long seen = 0;
  for (; std::getline(table, line); ++rows) {
    double q = 0, real = 0, imag = 0, error = 0, of_model = 0;
    long long samples = 0;
    REQUIRE(std::sscanf(line.c_str(), "%lf,%lf,%lf,%lf,%lf,%lld", &q, &real, &imag, &error, &of_model, &samples) == 6);
    seen += samples;
    if (samples > 10) CHECK(real == Approx(of_model).margin(0.03));
    CHECK(std::abs(imag) < 1e-3);
  }
  CHECK(rows == 20);
  CHECK(seen == 1500);
  CHECK(std::filesystem::exists(scratch / "out" / "geometry.png"));
}

TEST_CASE("geometry says the command that uses what it found, and that command runs", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", disc_observation(gaussian_disc));
  const auto run = run_mpol_here({"geometry", data, "-o", (scratch / "out").string()});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("position angle  130") != std::string::npos);
  const auto place = run.out.find("--inclination");
  REQUIRE(place != std::string::npos);
  std::istringstream stream(run.out.substr(place));
  std::vector<std::string> arguments = {"profile", data, "-o", (scratch / "profile").string()};
  for (std::string word; stream >> word;) arguments.push_back(word);
  CHECK(arguments.size() == 12);
  CHECK(run_mpol_here(arguments).exit_code == 0);
}

TEST_CASE("conjugated data lie on the other side, as --conjugate mends", "[cli]") {
  const Scratch scratch;
  auto arrays = disc_observation(gaussian_disc);
  arrays["data"] = arrays["data"].conj().resolve_conj();
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto turned = geometry_of({data, "--model", "gaussian"}, scratch / "turned");
  const auto mended = geometry_of({data, "--model", "gaussian", "--conjugate"}, scratch / "mended");
  CHECK(turned["offset_east_arcsec"].get<double>() == Approx(-0.15).margin(1e-4));
  CHECK(mended["offset_east_arcsec"].get<double>() == Approx(0.15).margin(1e-4));
}

TEST_CASE("a disc seen face on leaves the position angle open, in words", "[cli]") {
  const Scratch scratch;
  auto disc = gaussian_disc;
  disc.geometry.inclination = 0;
  const auto data = write_observation(scratch / "vis.npz", disc_observation(disc));
  const auto run = run_mpol_here({"geometry", data, "-o", (scratch / "out").string(), "--model", "gaussian"});
  CHECK(run.exit_code == 0);
  CHECK(run.error_names("face on"));
  CHECK(run.out.find("position angle  not known") != std::string::npos);
  const auto summary = json::parse(read_text(scratch / "out" / "summary.json"));
  CHECK(summary["position_angle_error_deg"].get<double>() == Approx(90));
  CHECK(summary["warnings"].size() == 1);
}

TEST_CASE("geometry refuses what it cannot use, in one line, and leaves nothing", "[cli]") {
  const Scratch scratch;
  const auto out = (scratch / "out").string();
  const auto data = write_observation(scratch / "vis.npz", disc_observation(gaussian_disc));
  auto few = small_observation(1, 12);
  const auto few_data = write_observation(scratch / "few.npz", few);
  const auto check = [&](const std::vector<std::string>& arguments, int exit_code, const std::string& words) {
    check_refusal(arguments, exit_code, words, out);
  };
  check({"geometry", "-o", out}, 2, "DATA");
  check({"geometry", data}, 2, "--out");
  check({"geometry", data, "-o", out, "--model", "square"}, 2, "--model");
  check({"geometry", data, "-o", out, "--bins", "0"}, 2, "bins");
  check({"geometry", data, "-o", out, "--npix", "16"}, 2, "--npix");
  check({"geometry", (scratch / "missing.npz").string(), "-o", out}, 1, "missing.npz");
  check({"geometry", few_data, "-o", out}, 1, "at least 20");
}
