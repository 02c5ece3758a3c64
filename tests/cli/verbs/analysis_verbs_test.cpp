#include <cstdio>
#include <sstream>

#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/deproject.h>
#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/models/hann_conv_cube.h>
#include <mpol_cpp/images/regrid.h>
#include <mpol_cpp/images/restore.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "compare.h"
#include "counting_allocator.h"
#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

/// A ring in the plane of the tilted_disc disc, brighter in the second channel.
Tensor ring() {
  const auto x = tilted_coords.sky_x() - tilted_disc.offset_east, y = tilted_coords.sky_y() - tilted_disc.offset_north;
  const double c = std::cos(tilted_disc.position_angle), s = std::sin(tilted_disc.position_angle);
  const auto r = at::hypot((x * c - y * s) / std::cos(tilted_disc.inclination), x * s + y * c);
  const auto plane = at::exp(-0.5 * ((r - 0.8) / 0.15).square());
  return at::stack({plane, 2 * plane});
}

/// Writes the ring as a model image, Jy/pixel, and returns the path as text.
std::string write_ring(const Scratch& scratch, double factor = 1, const std::string& name = "ring.fits") {
  io::write_fits(scratch / name, factor * ring(), tilted_coords);
  return (scratch / name).string();
}

std::vector<std::string> joined(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Runs a verb with --json, which must succeed and print what is in summary.json.
json run_verb(const std::vector<std::string>& arguments, const std::filesystem::path& out) {
  const auto run = run_mpol_here(joined(arguments, {"-o", out.string(), "--json"}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == read_text(out / "summary.json"));
  return json::parse(run.out);
}

/// Names in a folder but gnuplot's scripts, which are there only with gnuplot.
std::vector<std::string> without_figures(const std::filesystem::path& folder) {
  auto names = names_in(folder);
  std::erase(names, "figures");
  return names;
}

void check_usage_error(const std::vector<std::string>& arguments, const std::string& words) {
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  CHECK(run.exit_code == 2);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names(words));
}

}  // namespace

TEST_CASE("profile writes the rings of every channel", "[cli]") {
  const Scratch scratch;
  const auto image = write_ring(scratch);
  const auto summary = run_verb(joined({"profile", image, "--ring-width", "0.1"}, tilted_disc_options), scratch / "out");
  CHECK(without_figures(scratch / "out") == std::vector<std::string>{"profile.csv", "profile.png", "summary.json"});
  CHECK(summary["unit"] == "Jy/pixel");
  CHECK(summary["n_rings"] == 16);
  REQUIRE(summary["channels"].size() == 2);
  CHECK_THAT(summary["channels"][0]["peak_radius_arcsec"].get<double>(), WithinAbs(0.8, 0.051));
  std::istringstream table(read_text(scratch / "out" / "profile.csv"));
  std::string line;
  std::getline(table, line);
  CHECK(line == "channel,radius_arcsec,mean,scatter,error,pixels");
  std::vector<double> edges;
  for (int i = 0; i <= 16; ++i) edges.push_back(0.1 * i);
  const auto expected = radial_i(io::read_fits(image).cube, tilted_coords, tilted_disc, RadialImageOptions().edges(edges));
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t i = 0; i < 16; ++i) {
      std::getline(table, line);
      double radius = 0, mean = 0, scatter = 0, error = 0;
      long long channel = 0, pixels = 0;
      REQUIRE(std::sscanf(line.c_str(), "%lld,%lf,%lf,%lf,%lf,%lld", &channel, &radius, &mean, &scatter, &error, &pixels) == 6);
      CHECK(channel == c);
      CHECK(pixels == expected.pixels[i].item<std::int64_t>());
      CHECK(mean == Approx(expected.mean[c][i].item<double>()));
      CHECK(error == Approx(expected.error[c][i].item<double>()));
    }
  }
  CHECK_FALSE(std::getline(table, line));
}

TEST_CASE("deproject shows a disc face on", "[cli]") {
  const Scratch scratch;
  const auto image = write_ring(scratch);
  const auto summary = run_verb(joined({"deproject", image}, tilted_disc_options), scratch / "out");
  const auto written = io::read_fits(scratch / "out" / "deprojected.fits");
  CHECK(written.unit == "Jy/arcsec2");
  CHECK(relative_error(written.cube, deproject(ring(), tilted_coords, tilted_disc)) < 1e-5);
  const double observed = summary["flux_observed_jy"][1], face_on = summary["flux_face_on_jy"][1];
  CHECK(face_on == Approx(observed / std::cos(tilted_disc.inclination)).epsilon(0.01));
  CHECK(std::filesystem::exists(scratch / "out" / "deprojected.png"));
}

TEST_CASE("convolve restores an image to a beam, with the residual of the run", "[cli]") {
  const Scratch scratch;
  const auto image = write_ring(scratch);
  const Beam beam{.major = 0.3, .minor = 0.2, .position_angle = 25 * units::degree};
  const auto summary = run_verb({"convolve", image, "--bmaj", "0.3", "--bmin", "0.2", "--bpa", "25"}, scratch / "out");
  const auto restored = io::read_fits(scratch / "out" / "convolved.fits");
  CHECK(restored.unit == "Jy/beam");
  REQUIRE(restored.beams.size() == 1);
  CHECK(restored.beams[0].major == Approx(0.3));
  CHECK(restored.beams[0].position_angle == Approx(25 * units::degree));
  CHECK(relative_error(restored.cube, restore(ring(), tilted_coords, {beam})) < 1e-5);
  const double before = summary["channels"][0]["flux_before_jy"], after = summary["channels"][0]["flux_after_jy"];
  CHECK(after == Approx(before).epsilon(1e-3));

  // The beam of the first result, and that result as a residual.
  const auto first = (scratch / "out" / "convolved.fits").string();
  run_verb({"convolve", image, "--beam-of", first, "--residual", first}, scratch / "again");
  CHECK(relative_error(io::read_fits(scratch / "again" / "convolved.fits").cube, 2 * restored.cube) < 1e-5);

  run_verb({"convolve", image, "--bmaj", "0.3", "--unit", "Jy/arcsec2"}, scratch / "round");
  CHECK(io::read_fits(scratch / "round" / "convolved.fits").unit == "Jy/arcsec2");
}

TEST_CASE("deproject, convolve and profile by blocks of channels equal the whole, and hold a block only", "[cli][memory]") {
  const Scratch scratch;
  constexpr std::int64_t nchan = 60, npix = 256;
  const GridCoords coords(0.02, npix);
  const auto line = at::arange(1, nchan + 1, torch::kFloat64).view({-1, 1, 1});
  const auto sky = at::exp(-(at::hypot(coords.sky_x(), coords.sky_y()) - 0.6).square() / 0.02) * line;
  std::vector<Beam> beams;
  for (std::int64_t c = 0; c < nchan; ++c)
    beams.push_back({.major = 0.2 + 1e-3 * static_cast<double>(c), .minor = 0.1, .position_angle = 0.3});
  const auto image = (scratch / "cube.fits").string(), residual = (scratch / "residual.fits").string();
  io::write_fits(image, sky, coords, io::FitsOptions().unit(io::FitsUnit::jy_per_beam).beams(beams));
  io::write_fits(residual, 0.1 * sky, coords, io::FitsOptions().unit(io::FitsUnit::jy_per_beam));
  const auto peak = [&](const std::vector<std::string>& arguments, const std::string& out, const std::string& limit) {
    const CountingAllocator tensors;  // the process's memory has what earlier tests left for others to use
    run_verb(joined(arguments, {"--quiet", "--memory-limit", limit}), scratch / out);
    return tensors.peak() / 0x1p20;
  };
  for (const auto& verb : std::vector<std::vector<std::string>>{{"deproject", image, "--inclination", "40"},
                                                                {"convolve", image, "--bmaj", "0.3", "--residual", residual},
                                                                {"profile", image}}) {
    const std::string product = verb[0] == "convolve" ? "convolved" : verb[0] == "deproject" ? "deprojected" : "profile";
    const double by_blocks = peak(verb, verb[0] + "_blocks", "0.04"), at_once = peak(verb, verb[0] + "_whole", "2");
    INFO(verb[0] << ": " << by_blocks << " MiB by blocks, " << at_once << " MiB whole");
    CHECK(by_blocks < 0.04 * 1024);
    CHECK(at_once > by_blocks);
    const auto blocks = scratch / (verb[0] + "_blocks"), whole = scratch / (verb[0] + "_whole");
    if (verb[0] == "profile") {
      CHECK(read_text(blocks / "profile.csv") == read_text(whole / "profile.csv"));
    } else {
      const auto one = io::read_fits(blocks / (product + ".fits")), other = io::read_fits(whole / (product + ".fits"));
      CHECK(relative_error(one.cube, other.cube) < 1e-6);
      CHECK((one.beams == other.beams));
      CHECK(one.beams.size() == (verb[0] == "convolve" ? static_cast<std::size_t>(nchan) : 0));
    }
    CHECK(read_text(blocks / (product + ".png")) == read_text(whole / (product + ".png")));
    const auto refused = run_mpol_here(joined(verb, {"-o", (scratch / "none").string(), "--memory-limit", "1e-6"}));
    CHECK(refused.exit_code == 2);
    CHECK(refused.error_names("--memory-limit"));
  }
}

TEST_CASE("compare measures how two images differ, in one unit", "[cli]") {
  const Scratch scratch;
  const auto a = write_ring(scratch);
  io::write_fits(scratch / "b.fits", 1.25 * ring(), tilted_coords, io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
  const auto summary = run_verb({"compare", a, (scratch / "b.fits").string()}, scratch / "out");
  const auto& channel = summary["channels"][1];
  CHECK(channel["flux_b_jy"].get<double>() == Approx(1.25 * channel["flux_a_jy"].get<double>()));
  CHECK(channel["relative_distance"].get<double>() == Approx(0.25).epsilon(1e-5));
  CHECK(channel["max_relative_to_peak"].get<double>() == Approx(0.25).epsilon(1e-5));
  CHECK(channel["correlation"].get<double>() == Approx(1));
  CHECK(relative_error(io::read_fits(scratch / "out" / "difference.fits").cube, 0.25 * ring()) < 1e-5);
  CHECK(std::filesystem::exists(scratch / "out" / "comparison.png"));

  const auto same = run_verb({"compare", a, a}, scratch / "same");
  CHECK(same["channels"][0]["max_abs_difference"] == 0.0);

  io::write_fits(scratch / "small.fits", ring().narrow(1, 0, 32).narrow(2, 0, 32), GridCoords(0.05, 32));
  const auto run = run_mpol_here({"compare", a, (scratch / "small.fits").string(), "-o", (scratch / "no").string()});
  CHECK(run.exit_code == 1);
  CHECK(run.error_names("same grid"));
  CHECK_FALSE(std::filesystem::exists(scratch / "no"));
}

TEST_CASE("weights finds the factor by which sigma is wrong, and corrects it on request", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation(2, 4000);
  arrays["weight"] = arrays["weight"] * torch::tensor({{4.0}, {1.0}}, torch::kFloat64);  // sigma of channel 0 halved
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const std::vector<std::string> grid_options = {"--cell-size", "0.1", "--npix", "32"};
  const auto summary = run_verb(joined({"weights", data, "--apply", "channel"}, grid_options), scratch / "out");
  const double factor = summary["channels"][0]["sigma_factor"];
  CHECK(factor == Approx(2 * summary["channels"][1]["sigma_factor"].get<double>()).epsilon(0.08));
  CHECK(summary["n_visibilities"] == 8000);
  const auto corrected = io::read_npz(scratch / "out" / "visibilities.npz");
  const auto expected = io::read_npz(data);
  CHECK(relative_error(corrected.weights()[0], expected.weights()[0] / (factor * factor)) < 1e-12);
  CHECK(torch::equal(corrected.data(), expected.data()));

  const auto right =
      run_verb(joined({"weights", (scratch / "out" / "visibilities.npz").string()}, grid_options), scratch / "right");
  CHECK(right["sigma_factor"].get<double>() == Approx(1).epsilon(0.01));
  CHECK(right["applied"] == "none");
  CHECK(without_figures(scratch / "right") == std::vector<std::string>{"histogram.csv", "residuals.png", "summary.json"});
}

TEST_CASE("a bright source far from the phase centre is no wrong weight", "[cli]") {
  const Scratch scratch;
  const double too_large = GENERATE(0.5, 1.0, 2.0);
  auto arrays = small_observation(1, 4000);
  const auto turns = 1.1 * units::arcsec * arrays["uu"] + 0.6 * units::arcsec * arrays["vv"];
  arrays["data"] = arrays["data"] * at::polar(at::ones_like(turns), -2 * units::pi * turns);  // 1.6" East, 0.3" North
  arrays["weight"] = arrays["weight"] * too_large;
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const std::vector<std::string> grid_options = {"--cell-size", "0.1", "--npix", "48"};
  const auto fitted = run_verb(joined({"weights", data}, grid_options), scratch / "fit");
  CHECK(fitted["weight_factor"].get<double>() == Approx(1 / too_large).epsilon(0.05));
  const auto averaged = run_verb(joined({"weights", data, "--source", "cells"}, grid_options), scratch / "cells");
  CHECK(averaged["weight_factor"].get<double>() < 0.4 / too_large);
}

TEST_CASE("weights tells outliers from noise that is larger than the weights say", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation(1, 4000);
  const auto wild = (torch::arange(4000) % 20 == 0).to(torch::kFloat64);
  arrays["data"] = arrays["data"] + 10 * wild / arrays["weight"].sqrt();
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto run = run_mpol_here({"weights", data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "48"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.find("the residuals have outliers") != std::string::npos);
  CHECK(run.err.find("--noise student") != std::string::npos);
}

TEST_CASE("a fit starts from a FITS image on another grid", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(1));
  io::write_fits(scratch / "start.fits", ring().narrow(0, 0, 1), tilted_coords);
  const auto run = run_mpol(short_run(
      data, scratch / "out", {"--start", (scratch / "start.fits").string(), "--epochs", "1", "--learning-rate", "1e-9"}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const GridCoords coords(0.1, 32);
  const auto expected = HannConvCube()->forward(regrid(ring().narrow(0, 0, 1), tilted_coords, coords)) * coords.cell_area();
  CHECK(relative_error(io::read_fits(scratch / "out" / "image.fits").cube, expected) < 1e-4);
}

TEST_CASE("verbs on images refuse what they cannot use, in one line, and leave nothing", "[cli]") {
  const Scratch scratch;
  const auto image = write_ring(scratch), out = (scratch / "out").string();
  check_usage_error({"profile", "-o", out}, "IMAGE");
  check_usage_error({"profile", image}, "--out");
  check_usage_error({"profile", image, "-o", out, "--inclination", "90"}, "inclination");
  check_usage_error({"profile", image, "-o", out, "--ring-width", "0"}, "ring-width");
  check_usage_error({"deproject", image, "-o", out, "--position-angle", "nan"}, "position-angle");
  check_usage_error({"convolve", image, "-o", out}, "--bmaj");
  check_usage_error({"convolve", image, "-o", out, "--bmaj", "0.2", "--beam-of", image}, "--beam-of");
  check_usage_error({"convolve", image, "-o", out, "--bmaj", "0.2", "--bmin", "0.3"}, "--bmin");
  check_usage_error({"convolve", image, "-o", out, "--bmaj", "50"}, "wide");
  check_usage_error({"compare", image, "-o", out}, "B");
  check_usage_error({"weights", image, "-o", out, "--apply", "all"}, "apply");
  for (const auto& arguments : {std::vector<std::string>{"profile", (scratch / "missing.fits").string()},
                                {"deproject", (scratch / "missing.fits").string()},
                                {"convolve", image, "--beam-of", image},
                                {"compare", image, (scratch / "missing.fits").string()}}) {
    const auto run = run_mpol_here(joined(arguments, {"-o", out}));
    INFO(run.err);
    CHECK(run.exit_code == 1);
    CHECK(run.error_lines().size() == 1);
  }
  CHECK_FALSE(std::filesystem::exists(out));
}
