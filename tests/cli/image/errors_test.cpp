// `--samples`, `--test-structure`: how sure an image is.
#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/maximum.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/images/restore.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/uncertainty/image_growth.h>

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

/// What error.fits says where samples differ so: the larger of the error of each place and of its surroundings.
Tensor error_around(const Tensor& squares, const GridCoords& coords, const std::vector<Beam>& beams) {
  std::vector<Beam> twice;
  twice.reserve(beams.size());
  for (const auto& beam : beams) twice.push_back({2 * beam.major, 2 * beam.minor, beam.position_angle});
  return at::maximum(squares, GaussConvImage(coords, twice)->forward(squares)).sqrt();
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
  const Tensor squares = (mean - image).square() + spread.square() * (11.0 / 12);
  const auto factor = torch::tensor(summary["errors"]["error_factor"].get<std::vector<double>>(), torch::kFloat64);
  CHECK(factor.min().item<double>() >= 1);
  const auto numbers = [](const nlohmann::json& values) {
    return torch::tensor(values.get<std::vector<double>>(), torch::kFloat64);
  };
  const Tensor of_samples = factor.view({2, 1, 1}) * error_around(squares, coords, error.beams);
  auto held = torch::empty_like(image);
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const double width = summary["errors"]["growth_width_arcsec"][static_cast<std::size_t>(channel)];
    const auto smoothed = smoothed_to(map_of(out, "image.fits").narrow(0, channel, 1) / coords.cell_area(), coords, width);
    const auto flux = numbers(summary["errors"]["flux_left_jy"])[channel] / (smoothed.sum() * coords.cell_area());
    const std::vector<Beam> beam{error.beams[static_cast<std::size_t>(channel)]};
    held[channel].copy_(restore(flux * smoothed, coords, beam)[0]);
  }
  CHECK(relative_error(error.cube, (of_samples.square() + held.square()).sqrt()) < 1e-4);
  CHECK((map_of(out, "lower.fits") <= map_of(out, "upper.fits")).all().item<bool>());
  CHECK(error.cube.max().item<double>() > 0);
  CHECK(read_png(out / "errors.png").width == 3 * 620);
  const auto& errors = summary["errors"];
  CHECK(errors["samples"] == 12);
  const double per_visibility = summary["chi_squared_per_visibility"];
  CHECK(errors["noise_factor"].get<double>() == Approx(std::sqrt(per_visibility)).epsilon(1e-12));
  for (std::size_t channel = 0; channel < 2; ++channel) {
    const double flux_error = errors["flux_error_jy"][channel], bias = errors["flux_bias_jy"][channel];
    CHECK(flux_error >= std::hypot(bias, errors["flux_left_jy"][channel].get<double>()));
    CHECK(flux_error >= errors["flux_unseen_jy"][channel].get<double>());
    CHECK(errors["flux_unseen_jy"][channel].get<double>() >= 0);
    CHECK(flux_error < summary["flux_jy"][channel].get<double>());
    CHECK(errors["correlation_length_arcsec"][channel].get<double>() > 0.1);
  }
  CHECK(summary["seconds"]["errors"].get<double>() > 0);
  const auto report = read_text(out / "report.html");
  CHECK(report.find("From 12 fits of simulated data") != std::string::npos);
  CHECK(report.find("contours of its significance") != std::string::npos);

  const auto again = run_mpol_here({"image", "--config", (out / "run.toml").string(), "-o", (scratch / "again").string()});
  REQUIRE(again.exit_code == 0);
  double independent = 0, left = 0, unseen = 0;  // what priors keep back, and what no baseline sees, adds up over channels
  for (std::size_t channel = 0; channel < 2; ++channel) {
    const double own_left = errors["flux_left_jy"][channel], own_unseen = errors["flux_unseen_jy"][channel];
    independent += std::pow(errors["flux_error_jy"][channel].get<double>(), 2) - own_left * own_left - own_unseen * own_unseen;
    left += own_left;
    unseen += own_unseen;
  }
  const auto total = fmt::format("{:.2g} Jy", std::sqrt(independent + left * left + unseen * unseen));
  CHECK(again.out.find(" +- " + total) != std::string::npos);
  CHECK(report.find(" ± " + total) != std::string::npos);
  for (const auto* name : {"error.fits", "std.fits", "mean.fits", "lower.fits", "upper.fits"})
    CHECK(same(map_of(scratch / "again", name), map_of(out, name)));
}

TEST_CASE("a run that asks for no samples has a map of its error, as those of many", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto out = scratch / "out";
  const auto exists = [&](const char* name) { return std::filesystem::exists(out / name); };
  const auto summary = sampled_run(data, out, {});
  CHECK(summary["converged"] == true);
  CHECK(summary["errors"]["samples"] == 4);
  CHECK_FALSE(summary.contains("why_no_errors"));
  CHECK(exists("errors.png"));
  for (const auto* name : {"std.fits", "mean.fits", "lower.fits", "upper.fits"}) CHECK_FALSE(exists(name));
  const auto error = map_of(out, "error.fits");
  REQUIRE(error.size(0) == 2);
  const auto many = sampled_run(data, scratch / "many", {"--samples", "48"});
  const auto of_many = map_of(scratch / "many", "error.fits");
  for (int channel = 0; channel < 2; ++channel) {
    const double ratio = (error[channel].square().mean() / of_many[channel].square().mean()).sqrt().item<double>();
    CHECK(ratio > 0.6);
    CHECK(ratio < 1.6);
  }
  CHECK(same(map_of(out, "image.fits"), map_of(scratch / "many", "image.fits")));

  // Judging a structure of the finished run leaves its errors as they were.
  sampled_run(data, out, {"--resume", "--test-structure", "circle:0,0,0.5"});
  CHECK(same(map_of(out, "error.fits"), error));

  const auto none = sampled_run(data, out, {"--overwrite", "--samples", "0"});
  CHECK_FALSE(none.contains("errors"));
  CHECK_FALSE(none.contains("why_no_errors"));
  for (const auto* name : {"error.fits", "errors.png"}) CHECK_FALSE(exists(name));
}

TEST_CASE("a run without errors says why it has none", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  auto why = [&, number = 0](const std::vector<std::string>& more) mutable {
    const auto out = scratch / fmt::format("out{}", number++);
    const auto summary = sampled_run(data, out, more);
    CHECK_FALSE(summary.contains("errors"));
    CHECK_FALSE(std::filesystem::exists(out / "error.fits"));
    return summary["why_no_errors"].get<std::string>();
  };
  CHECK(why({"--optimizer", "adam", "--epochs", "5"}) == "errors are sampled of fits by pogm, fista or admm, not by adam");
  CHECK(why({"--epochs", "3"}) == "the fit has not converged");
  CHECK(why({"--entropy", "1e-4", "--epochs", "50"}).ends_with("not by adam"));
  const double needed = sampled_run(data, scratch / "none", {"--samples", "0"})["memory_bytes"]["estimated"];
  CHECK(why({"--memory-limit", fmt::format("{:.17g}", (needed + 1e5) / 0x1p30)}) == "they would need more memory than there is");
  const auto words =
      run_mpol_here({"image", data, "-o", (scratch / "words").string(), "--cell-size", "0.1", "--npix", "32", "--epochs", "3"});
  REQUIRE(words.exit_code == 0);
  CHECK(words.out.find("errors      none: the fit has not converged") != std::string::npos);
}

TEST_CASE("kept samples are what the maps of errors are made of, and give a profile its errors", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = scratch / "out";
  const auto fit = sampled_run(data, out, {"--samples", "6", "--keep-samples"});
  const double factor = fit["errors"]["error_factor"][0];
  const auto samples = io::read_fits(out / "samples.fits"), error = io::read_fits(out / "error.fits");
  REQUIRE(samples.cube.size(0) == 6);
  CHECK(samples.planes == io::FitsPlanes::samples);
  CHECK(error.planes == io::FitsPlanes::channels);
  const GridCoords coords(0.1, 32);
  const auto image = map_of(out, "image.fits");
  const auto differences = restore((samples.cube - image).unsqueeze(1) / coords.cell_area(), coords, error.beams);
  const Tensor scatter = factor * error_around(differences.square().mean(0), coords, error.beams);
  const ImageGrowth growth{torch::tensor({samples.sample_errors.growth.value()}, torch::kFloat64),
                           torch::tensor({samples.sample_errors.width.value()}, torch::kFloat64)};
  const auto held = growth.of_channel(0, image[0], coords).unsqueeze(0);
  CHECK(held.sum().item<double>() == Approx(fit["errors"]["flux_left_jy"][0].get<double>()).epsilon(1e-4));
  CHECK(samples.sample_errors.width == Approx(fit["errors"]["growth_width_arcsec"][0].get<double>()));
  const auto left = restore(held / coords.cell_area(), coords, error.beams);
  CHECK(relative_error(error.cube, (scatter.square() + left.square()).sqrt()) < 1e-3);

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
  CHECK(peak["peak_error"].get<double>() ==
        Approx(sampled_error(of_image, of_samples, factor, radial_i(held, coords, {}, rings).mean)[0][ring].item<double>())
            .epsilon(1e-5));
  // The error follows what the file says.
  CHECK(samples.sample_errors.factor == Approx(factor));
  const auto saying = [&](const std::string& name, const io::FitsOptions& says) {
    io::write_fits(scratch / name, samples.cube / coords.cell_area(), coords, says);
    return profile_of(name + ".profile", {"--samples", (scratch / name).string()});
  };
  const auto says = io::FitsOptions().planes(io::FitsPlanes::samples);
  const auto other = saying("other.fits", io::FitsOptions(says).sample_errors({3, -0.5, {}}));
  REQUIRE(other.exit_code == 0);
  CHECK(nlohmann::json::parse(other.out)["channels"][0]["peak_error"].get<double>() ==
        Approx(sampled_error(of_image, of_samples, 3, -0.5 * of_image.mean)[0][ring].item<double>()).epsilon(1e-6));
  const auto wrong = saying("wrong.fits", io::FitsOptions(says).sample_errors({0.5, {}, {}}));
  CHECK(wrong.exit_code != 0);
  CHECK(wrong.err.find("ERRFACT 0.5") != std::string::npos);
  // A file of before counted its samples as channels, and knew no factor.
  io::write_fits(scratch / "before.fits", samples.cube / coords.cell_area(), coords);
  const auto before = profile_of("before", {"--samples", (scratch / "before.fits").string()});
  REQUIRE(before.exit_code == 0);
  CHECK(nlohmann::json::parse(before.out)["channels"][0]["peak_error"].get<double>() ==
        Approx(sampled_error(of_image, of_samples)[0][ring].item<double>()).epsilon(1e-6));
  // What is made of samples has them as they were.
  const auto seen = run_mpol_here({"convolve", (out / "samples.fits").string(), "-o", (scratch / "seen").string(), "--beam-of",
                                   (out / "dirty.fits").string()});
  INFO(seen.err);
  REQUIRE(seen.exit_code == 0);
  const auto convolved = io::read_fits(scratch / "seen" / "convolved.fits");
  CHECK(convolved.planes == io::FitsPlanes::samples);
  CHECK(convolved.cube.size(0) == 6);
  CHECK(convolved.sample_errors.factor == samples.sample_errors.factor);
  CHECK(convolved.sample_errors.growth == samples.sample_errors.growth);
  const auto scattered = profile_of("scattered", {});
  REQUIRE(scattered.exit_code == 0);
  CHECK(nlohmann::json::parse(scattered.out)["error"] == "scatter");
  CHECK(profile_of("other", {"--samples", (out / "error.fits").string()}).error_names("--samples"));
  CHECK(profile_of("single", {"--samples", (out / "image.fits").string()}).error_names("--samples"));

  auto of_line = small_observation(2);
  of_line["frequency"] = torch::tensor({230e9, 231e9}, torch::kFloat64);
  const auto line = write_observation(scratch / "line.npz", of_line);
  sampled_run(line, scratch / "line", {"--samples", "3", "--keep-samples"});
  CHECK(map_of(scratch / "line", "samples_0001.fits").size(0) == 3);
  const auto bytes = read_text(scratch / "line" / "samples_0001.fits");
  const auto number = [&bytes](const std::string& key) { return std::stod(bytes.substr(bytes.find(key + "=") + 9, 30)); };
  CHECK(number("NAXIS   ") == 5);
  CHECK(number("NAXIS3  ") == 1);
  CHECK(number("NAXIS5  ") == 3);
  CHECK(number("CRVAL3  ") == 231e9);
  for (const auto* card : {"CTYPE3  = 'FREQ    '", "CTYPE5  = 'SAMPLE  '"}) CHECK(bytes.find(card) != std::string::npos);
}

TEST_CASE("the profile of a run is at the resolution of its beams, with the errors of its samples where it has kept them",
          "[cli]") {
  const Scratch scratch;
  auto observation = small_observation(2);
  observation["frequency"] = torch::tensor({230e9, 231e9}, torch::kFloat64);
  const auto data = write_observation(scratch / "vis.npz", observation);
  const auto out = scratch / "out";
  const auto fit = sampled_run(data, out, {"--keep-samples"});
  CHECK(fit["errors"]["samples"] == 4);
  const auto profile_of = [&](const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"profile",  out.string(), "-o",    (scratch / name).string(), "--ring-width", "0.4",
                                      "--radius", "1.6",        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_mpol_here(words);
  };
  const auto run = profile_of("profile");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto summary = nlohmann::json::parse(run.out);
  CHECK(summary["unit"] == "Jy/beam");
  CHECK(summary["error"] == "samples");
  const GridCoords coords(0.1, 32);
  const auto beams = io::read_fits(out / "dirty.fits").beams;
  const auto rings = RadialImageOptions().edges({0, 0.4, 0.8, 1.2, 1.6});
  const auto seen = restore(map_of(out, "image.fits") / coords.cell_area(), coords, beams);
  for (std::size_t channel = 0; channel < 2; ++channel) {
    const auto samples = io::read_fits(out / fmt::format("samples_000{}.fits", channel));
    const std::vector<Beam> beam{beams[beams.size() == 1 ? 0 : channel]};
    const auto of_image = radial_i(seen.narrow(0, static_cast<std::int64_t>(channel), 1), coords, {}, rings);
    const auto of_samples =
        radial_i(restore(samples.cube.unsqueeze(1) / coords.cell_area(), coords, beam).squeeze(1), coords, {}, rings);
    const ImageGrowth growth{torch::tensor({samples.sample_errors.growth.value()}, torch::kFloat64),
                             torch::tensor({samples.sample_errors.width.value()}, torch::kFloat64)};
    const auto sky = map_of(out, "image.fits")[static_cast<std::int64_t>(channel)] / coords.cell_area();
    const auto held = restore(growth.of_channel(0, sky, coords).unsqueeze(0), coords, beam);
    const auto error =
        sampled_error(of_image, of_samples, samples.sample_errors.factor.value(), radial_i(held, coords, {}, rings).mean);
    const auto ring = of_image.mean[0].argmax().item<std::int64_t>();
    CHECK(summary["channels"][channel]["peak"].get<double>() == Approx(of_image.mean[0][ring].item<double>()));
    CHECK(summary["channels"][channel]["peak_error"].get<double>() == Approx(error[0][ring].item<double>()).epsilon(1e-6));
  }
  const auto second = nlohmann::json::parse(profile_of("second", {"--channels", "1"}).out);
  REQUIRE(second["channels"].size() == 1);
  for (const auto* number : {"peak", "peak_error", "peak_radius_arcsec"})
    CHECK(second["channels"][0][number].get<double>() == Approx(summary["channels"][1][number].get<double>()).epsilon(1e-9));
  CHECK(profile_of("own", {"--samples", (out / "samples_0000.fits").string()}).error_names("--samples"));
  for (const auto* name : {"samples_0000.fits", "samples_0001.fits"}) std::filesystem::remove(out / name);
  const auto scattered = nlohmann::json::parse(profile_of("scattered").out);
  CHECK(scattered["error"] == "scatter");
  CHECK(scattered["unit"] == "Jy/beam");
  CHECK(scattered["channels"][0]["peak"] == summary["channels"][0]["peak"]);

  sampled_run(data, scratch / "split", {"--split-channels"});
  const auto split = run_mpol_here({"profile", (scratch / "split").string(), "-o", (scratch / "of_split").string()});
  CHECK(split.exit_code != 0);
  CHECK(split.err.find("image_0000.fits") != std::string::npos);
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

TEST_CASE("a bright source is real, the empty sky is not, and a finished run is judged without a new fit", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = scratch / "out";
  const auto before = sampled_run(data, out, {});
  CHECK_FALSE(before.contains("structures"));
  const auto image = map_of(out, "image.fits");
  const GridCoords coords(0.1, 32);
  const auto brightest = image[0].argmax().item<std::int64_t>();
  const auto of_pixel = [&](const Tensor& axis) { return axis.reshape({-1})[brightest].item<double>(); };
  const double east = of_pixel(coords.sky_x()), north = of_pixel(coords.sky_y());
  const auto source = fmt::format("circle:{:.12g},{:.12g},0.65", east, north);
  const auto empty = fmt::format("circle:{},{},0.3", east > 0 ? -1.2 : 1.2, north > 0 ? -1.2 : 1.2);
  const auto run = run_mpol_here({"image", "-o", out.string(), "--resume", "--test-structure", source + "; " + empty});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("structure   " + source) != std::string::npos);
  const auto after = nlohmann::json::parse(read_text(out / "summary.json"));
  CHECK(after["epochs"] == before["epochs"]);
  CHECK(same(map_of(out, "image.fits"), image));

  const auto& found = after["structures"];
  REQUIRE(found.size() == 2);
  CHECK(found[0]["real"] == true);
  CHECK(found[1]["real"] == false);
  for (const auto& each : found) {
    const double f = each["f_image"], without = each["f_without"], sigma = each["sigma"];
    CHECK(each["real"].get<bool>() == (without > each["gamma"].get<double>()));
    CHECK(sigma == Approx(std::sqrt(2 * (without - f))).margin(1e-4));
    CHECK(each["f_filled"].get<double>() >= without);
    CHECK(each["places"].get<double>() == Approx(32.0 * 32.0 / each["pixels"].get<double>()));
    CHECK(each["gamma"].get<double>() == Approx(f + std::log(100 * each["places"].get<double>())).epsilon(1e-9));
    CHECK(each["gamma_of_all_pixels"].get<double>() > each["gamma"].get<double>());
  }
  const double removed = found[0]["flux_removed_jy"][0], flux = after["flux_jy"][0];
  CHECK(removed > 0);
  CHECK(removed < 1.05 * flux);
  CHECK(read_png(out / "structures.png").width == 4 * 620);
  const auto report = read_text(out / "report.html");
  CHECK(report.find("The cheapest image without the structure " + source) != std::string::npos);
  CHECK(report.find("not proven") != std::string::npos);

  // A mask of the same pixels, in a run of its own.
  const auto marked = (coords.sky_x() - east).square() + (coords.sky_y() - north).square() <= 0.65 * 0.65;
  io::write_fits(scratch / "mask.fits", marked.to(torch::kFloat64).unsqueeze(0), coords);
  const auto by_mask = sampled_run(data, scratch / "masked", {"--test-structure", (scratch / "mask.fits").string()});
  const auto& masked = by_mask["structures"][0];
  CHECK(masked["pixels"] == found[0]["pixels"]);
  CHECK(masked["f_without"].get<double>() == Approx(found[0]["f_without"].get<double>()).epsilon(1e-6));

  const auto plain =
      run_mpol_here({"image", "--config", (out / "run.toml").string(), "-o", (scratch / "again").string(), "--json"});
  REQUIRE(plain.exit_code == 0);
  CHECK(nlohmann::json::parse(plain.out)["structures"] == found);
}

TEST_CASE("structures that cannot be judged are refused before the fit", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto refused = [&](const std::vector<std::string>& more, int code) {
    std::vector<std::string> arguments = {"image", data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = run_mpol_here(arguments);
    INFO(more.at(1) << ": " << run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names("--test-structure"));
    CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
  };
  refused({"--test-structure", "circle:1,2"}, 2);
  refused({"--test-structure", "circle:1,2,-3"}, 2);
  refused({"--test-structure", "circle:1,2,north"}, 2);
  refused({"--test-structure", "circle:0,0,0.5;;circle:1,1,0.5"}, 2);
  refused({"--test-structure", "circle:0,0,0.5", "--optimizer", "adam"}, 2);
  refused({"--test-structure", "circle:90,90,0.5"}, 1);
  refused({"--test-structure", "circle:0,0,99"}, 1);
  const auto missing = run_mpol_here({"image", data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32",
                                      "--test-structure", (scratch / "missing.fits").string()});
  CHECK(missing.exit_code == 1);
  CHECK(missing.error_names("missing.fits"));
}
