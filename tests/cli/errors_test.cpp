// `--samples`: how sure an image is.
#include "catch.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/restore.h>
#include <mpol_cpp/io/fits.h>

#include "compare.h"
#include "observation.h"
#include "picture.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

nlohmann::json sampled_run(const std::string& data, const std::filesystem::path& out, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"image", data, "-o", out.string(), "--cell-size", "0.1", "--npix", "32", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return nlohmann::json::parse(run.out);
}

Tensor map_of(const std::filesystem::path& out, const std::string& name) { return io::read_fits(out / name).cube; }

}  // namespace

TEST_CASE("sampled errors are maps at the beam's resolution, and the flux has one", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const std::string likelihood = GENERATE("exact", "gridded");
  const auto out = scratch / "out";
  const auto summary = sampled_run(data, out, {"--samples", "12", "--likelihood", likelihood});
  const auto error = io::read_fits(out / "error.fits");
  CHECK(error.unit == "Jy/beam");
  REQUIRE(error.beams.size() == 2);
  const GridCoords coords(0.1, 32);
  const auto image = restore(map_of(out, "image.fits") / coords.cell_area(), coords, error.beams);
  const auto mean = map_of(out, "mean.fits"), spread = map_of(out, "std.fits");
  // rms^2 = bias^2 + variance, of which the spread is the unbiased estimate
  const auto expected = ((mean - image).square() + spread.square() * (11.0 / 12)).sqrt();
  CHECK(relative_error(error.cube, expected) < 1e-4);
  CHECK((map_of(out, "lower.fits") <= map_of(out, "upper.fits")).all().item<bool>());
  CHECK(error.cube.max().item<double>() > 0);
  CHECK(read_png(out / "errors.png").width == 3 * 620);
  const auto& errors = summary["errors"];
  CHECK(errors["samples"] == 12);
  const double per_visibility = summary["chi_squared_per_visibility"];
  CHECK(errors["noise_factor"].get<double>() == Approx(std::sqrt(per_visibility)).epsilon(1e-12));
  for (std::size_t channel = 0; channel < 2; ++channel) {
    const double flux_error = errors["flux_error_jy"][channel], bias = errors["flux_bias_jy"][channel];
    CHECK(flux_error >= std::abs(bias));
    CHECK(flux_error < summary["flux_jy"][channel].get<double>());
    CHECK(errors["correlation_length_arcsec"][channel].get<double>() > 0.1);
  }
  CHECK(summary["seconds"]["errors"].get<double>() > 0);
  const auto report = read_text(out / "report.html");
  CHECK(report.find("From 12 fits of simulated data") != std::string::npos);
  CHECK(report.find("contours of its significance") != std::string::npos);

  const auto again = run_mpol_here({"image", "--config", (out / "run.toml").string(), "-o", (scratch / "again").string()});
  REQUIRE(again.exit_code == 0);
  CHECK(again.out.find(" +- ") != std::string::npos);
  for (const auto* name : {"error.fits", "std.fits", "mean.fits", "lower.fits", "upper.fits"})
    CHECK(same(map_of(scratch / "again", name), map_of(out, name)));
}

TEST_CASE("kept samples are what the maps of errors are made of, and give a profile its errors", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = scratch / "out";
  sampled_run(data, out, {"--samples", "6", "--keep-samples"});
  const auto samples = io::read_fits(out / "samples.fits"), error = io::read_fits(out / "error.fits");
  REQUIRE(samples.cube.size(0) == 6);
  const GridCoords coords(0.1, 32);
  const auto image = map_of(out, "image.fits");
  const auto differences = restore((samples.cube - image).unsqueeze(1) / coords.cell_area(), coords, error.beams);
  CHECK(relative_error(error.cube, differences.square().mean(0).sqrt()) < 1e-3);

  const auto profile_of = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "profile", (out / "image.fits").string(), "-o", (scratch / name).string(), "--json", "--ring-width", "0.4", "--radius",
        "1.6"};
    words.insert(words.end(), more.begin(), more.end());
    return run_mpol_here(words);
  };
  const auto sampled = profile_of("sampled", {"--samples", (out / "samples.fits").string()});
  REQUIRE(sampled.exit_code == 0);
  const auto summary = nlohmann::json::parse(sampled.out);
  CHECK(summary["error"] == "samples");
  const auto rings = RadialImageOptions().edges({0, 0.4, 0.8, 1.2, 1.6});
  const auto of_image = radial_i(image, coords, {}, rings), of_samples = radial_i(samples.cube, coords, {}, rings);
  const auto ring = of_image.mean[0].argmax().item<std::int64_t>();
  const auto& peak = summary["channels"][0];
  CHECK(peak["peak"].get<double>() == Approx(of_image.mean[0][ring].item<double>()));
  CHECK(peak["peak_error"].get<double>() == Approx(sampled_error(of_image, of_samples)[0][ring].item<double>()).epsilon(1e-6));
  const auto scattered = profile_of("scattered", {});
  REQUIRE(scattered.exit_code == 0);
  CHECK(nlohmann::json::parse(scattered.out)["error"] == "scatter");
  CHECK(profile_of("other", {"--samples", (out / "error.fits").string()}).error_names("--samples"));
  CHECK(profile_of("single", {"--samples", (out / "image.fits").string()}).error_names("--samples"));

  const auto line = write_observation(scratch / "line.npz", small_observation(2));
  sampled_run(line, scratch / "line", {"--samples", "3", "--keep-samples"});
  CHECK(map_of(scratch / "line", "samples_0001.fits").size(0) == 3);
}

TEST_CASE("errors are sampled of convex fits alone", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"image", data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = run_mpol_here(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names("--samples"));
    CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
  };
  refused({"--samples", "4", "--optimizer", "adam"});
  refused({"--samples", "4", "--entropy", "1e-4"});
  refused({"--samples", "1"});
}
