#include "catch.h"

#include <cmath>
#include <cstdio>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/core/units.h>

#include "observation.h"
#include "program.h"
#include "random.h"
#include "verb_runs.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

const DiscGeometry radial_disc_geometry{
    .inclination = 40 * units::degree, .position_angle = 130 * units::degree, .offset_east = 0.1, .offset_north = -0.06};
const std::vector<std::string> radial_disc_options = {"--inclination", "40",  "--position-angle", "130",
                                                      "--offset-east", "0.1", "--offset-north",   "-0.06"};
constexpr double radial_flux = 0.5, radial_width = 0.7;  // Jy, arcsec: a Gaussian

std::map<std::string, Tensor> radial_observation() {
  auto arrays = small_observation(1, 1500);
  const DiscModel disc{
      .shape = DiscShape::gaussian, .flux = radial_flux, .size = radial_width, .width = 0, .geometry = radial_disc_geometry};
  const auto noise = normal({1500}, torch::kComplexDouble, 3) * std::sqrt(2.0) / arrays["weight"].sqrt();
  arrays["data"] = disc_visibilities(disc, arrays["uu"], arrays["vv"]) + noise;
  return arrays;
}

/// Brightness of the Gaussian face on, Jy/arcsec^2.
double radial_truth(double radius) {
  const double sigma = radial_width / units::fwhm_per_sigma;
  return radial_flux / (2 * units::pi * sigma * sigma * std::cos(radial_disc_geometry.inclination)) *
         std::exp(-0.5 * radius * radius / (sigma * sigma));
}

json radial_summary(std::vector<std::string> arguments, const std::vector<std::string>& more, const std::filesystem::path& out) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return summary_of("radial", std::move(arguments), out);
}

}  // namespace

TEST_CASE("radial writes the profile of a disc with its errors, and the visibilities of it", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", radial_observation());
  const auto summary = radial_summary({data}, radial_disc_options, scratch / "out");
  CHECK(summary["geometry"] == "given");
  CHECK(summary["unit"] == "Jy/arcsec2");
  CHECK(std::abs(summary["flux_jy"].get<double>() - radial_flux) < 4 * summary["flux_error_jy"].get<double>());
  CHECK(summary["reduced_chi_squared"].get<double>() == Approx(1).margin(0.08));
  CHECK(summary["converged"] == true);
  CHECK(summary["n_visibilities"] == 1500);

  std::istringstream table(read_text(scratch / "out" / "radial.csv"));
  std::string line;
  std::getline(table, line);
  CHECK(line == "radius_arcsec,brightness,error");
  std::int64_t rows = 0, near = 0;
  for (; std::getline(table, line); ++rows) {
    double radius = 0, brightness = 0, error = 0;
    REQUIRE(std::sscanf(line.c_str(), "%lf,%lf,%lf", &radius, &brightness, &error) == 3);
    CHECK(error > 0);
    CHECK(std::abs(brightness - radial_truth(radius)) < 0.03);
    near += std::abs(brightness - radial_truth(radius)) < 3 * error ? 1 : 0;
  }
  CHECK(rows == summary["points"].get<std::int64_t>());
  CHECK(static_cast<double>(near) > 0.8 * static_cast<double>(rows));

  std::istringstream bins(read_text(scratch / "out" / "visibilities.csv"));
  std::getline(bins, line);
  CHECK(line == "q_lambda,real,imag,error,model,samples");
  long long seen = 0;
  while (std::getline(bins, line)) {
    double q = 0, real = 0, imag = 0, error = 0, model = 0;
    long long samples = 0;
    REQUIRE(std::sscanf(line.c_str(), "%lf,%lf,%lf,%lf,%lf,%lld", &q, &real, &imag, &error, &model, &samples) == 6);
    seen += samples;
    if (samples > 0) CHECK(std::abs(imag) < 5 * error);
  }
  CHECK(seen == 1500);
  CHECK(std::filesystem::exists(scratch / "out" / "radial.png"));
}

TEST_CASE("without a geometry radial fits it as mpol geometry does", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", radial_observation());
  const auto summary = radial_summary({data}, {"--radius", "1.4", "--points", "40"}, scratch / "out");
  CHECK(summary["geometry"] == "fitted");
  CHECK(summary["points"] == 40);
  CHECK(summary["radius_arcsec"].get<double>() == Approx(1.4));
  CHECK(summary["inclination_deg"].get<double>() == Approx(40).margin(3));
  const auto run = run_mpol_here({"geometry", data, "-o", (scratch / "geometry").string(), "--json"});
  REQUIRE(run.exit_code == 0);
  const auto fitted = json::parse(run.out);
  for (const auto* key : {"inclination_deg", "position_angle_deg", "offset_east_arcsec", "offset_north_arcsec"})
    CHECK(summary[key] == fitted[key]);
}

TEST_CASE("radial refuses what it cannot use, in one line, and leaves nothing", "[cli]") {
  const Scratch scratch;
  const auto out = (scratch / "out").string();
  const auto data = write_observation(scratch / "vis.npz", radial_observation());
  const auto check = [&](const std::vector<std::string>& arguments, int exit_code, const std::string& words) {
    check_refusal(arguments, exit_code, words, out);
  };
  check({"radial", "-o", out}, 2, "DATA");
  check({"radial", data}, 2, "--out");
  check({"radial", data, "-o", out, "--radius", "0"}, 2, "radius");
  check({"radial", data, "-o", out, "--points", "2"}, 2, "points");
  check({"radial", data, "-o", out, "--alpha", "0.5"}, 2, "alpha");
  check({"radial", data, "-o", out, "--smoothness", "-1"}, 2, "smoothness");
  check({"radial", data, "-o", out, "--inclination", "90"}, 2, "inclination");
  check({"radial", data, "-o", out, "--inclination", "10", "--radius", "1e6", "--points", "5000"}, 2, "smaller radius");
  check({"radial", (scratch / "missing.npz").string(), "-o", out}, 1, "missing.npz");
}
