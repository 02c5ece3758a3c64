#include "catch.h"

#include <cmath>
#include <sstream>

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/simulation/direct_visibilities.h>
#include <mpol_cpp/simulation/keplerian_disc.h>

#include "compare.h"
#include "observation.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

const GridCoords line_grid(0.1, 32);
constexpr double rest = 230.538e9, spacing = 250e3;
constexpr std::int64_t line_nchan = 40, line_nvis = 500, line_width = 5, line_first = 12;

Tensor line_frequencies() { return rest + spacing * (at::arange(line_nchan, torch::kFloat64) - 15); }

const KeplerianDisc seen_disc{.mass = 0.8,
                              .distance = 140,
                              .inclination = 40 * units::degree,
                              .position_angle = 30 * units::degree,
                              .inner_radius = 0.3,
                              .outer_radius = 1.2,
                              .line_width = 0.4};
const std::vector<std::string> disc_options = {
    "--keplerian", "--mass",         "0.8", "--distance",     "140", "--inclination", "40",  "--position-angle",
    "30",          "--outer-radius", "1.2", "--inner-radius", "0.3", "--line-width",  "0.4", "--cell-size",
    "0.1",         "--npix",         "32"};

Tensor line_cube() { return random_image(line_grid, line_width, torch::kFloat64, 8); }

/// Noise alone in channels of known frequency, and a line on top of it.
std::map<std::string, Tensor> observation_of(const Tensor& cube, double strength) {
  auto arrays = small_observation(line_nchan, line_nvis);
  const auto weight = torch::full({line_nchan, line_nvis}, 25.0, torch::kFloat64);
  auto data =
      at::complex(normal({line_nchan, line_nvis}, torch::kFloat64, 4), normal({line_nchan, line_nvis}, torch::kFloat64, 5)) / 5;
  const auto model = direct_visibilities(cube, line_grid, Baselines::in_lambda(arrays["uu"], arrays["vv"]), cube.size(0));
  data.narrow(0, line_first, cube.size(0)).add_(strength * model);
  arrays["data"] = data;
  arrays["weight"] = weight;
  arrays["frequency"] = line_frequencies();
  return arrays;
}

std::string write_template(const Scratch& scratch, const std::string& name, const Tensor& cube, const Tensor& frequencies) {
  auto options = io::FitsOptions();
  if (frequencies.defined()) options.frequencies(frequencies);
  io::write_fits(scratch / name, cube, line_grid, options);
  return (scratch / name).string();
}

Tensor template_frequencies() { return line_frequencies().narrow(0, 3, line_width); }

json run_filter(std::vector<std::string> arguments, const std::filesystem::path& out) {
  arguments.insert(arguments.begin(), "filter");
  for (const auto& more : {std::string("-o"), out.string(), std::string("--json"), std::string("--overwrite")})
    arguments.push_back(more);
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == read_text(out / "summary.json"));
  return json::parse(run.out);
}

}  // namespace

TEST_CASE("filter finds a line of a FITS cube, whichever way its frequencies run", "[cli]") {
  const Scratch scratch;
  auto arrays = observation_of(line_cube(), 0.5);
  arrays["rest_frequency"] = at::scalar_tensor(rest, torch::kFloat64);
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto up = write_template(scratch, "up.fits", line_cube(), template_frequencies());
  const auto down = write_template(scratch, "down.fits", line_cube().flip({0}), template_frequencies().flip({0}));
  const auto summary = run_filter({data, "--template", up + "," + down}, scratch / "out");
  auto names = names_in(scratch / "out");
  std::erase(names, "figures");
  CHECK(names == std::vector<std::string>{"filter.csv", "filter.png", "summary.json"});
  REQUIRE(summary["templates"].size() == 2);
  CHECK(summary["templates"][0]["name"] == "up.fits");
  CHECK(summary["templates"][0]["peak"] == summary["templates"][1]["peak"]);
  const auto& peak = summary["templates"][0]["peak"];
  CHECK(peak["middle_channel"] == line_first + 2);
  constexpr double offset = static_cast<double>(line_first + 2 - 15) * spacing;
  CHECK(peak["response"].get<double>() > 10);
  CHECK_THAT(peak["frequency_hz"].get<double>(), WithinRel(rest + offset, 1e-12));
  CHECK_THAT(peak["velocity_km_s"].get<double>(), WithinAbs(-offset / rest * 299792.458, 1e-6));
  const double error = peak["amplitude_error"];
  CHECK_THAT(peak["amplitude"].get<double>(), WithinAbs(0.5, 4 * error));
  CHECK_THAT(peak["response"].get<double>(), WithinRel(peak["amplitude"].get<double>() / error, 1e-6));

  std::istringstream table(read_text(scratch / "out" / "filter.csv"));
  std::string line;
  std::getline(table, line);
  CHECK(line == "template,middle_channel,frequency_hz,velocity_km_s,response_sigma,amplitude,amplitude_error");
  int rows = 0;
  double highest = 0;
  for (; std::getline(table, line); ++rows) {
    int of_template = 0;
    double channel = 0, frequency = 0, velocity = 0, response = 0;
    REQUIRE(std::sscanf(line.c_str(), "%d,%lf,%lf,%lf,%lf", &of_template, &channel, &frequency, &velocity, &response) == 5);
    CHECK(of_template == rows / (line_nchan - line_width + 1));
    CHECK(channel == static_cast<double>(rows % (line_nchan - line_width + 1) + 2));
    highest = std::max(highest, response);
  }
  CHECK(rows == 2 * (line_nchan - line_width + 1));
  CHECK(highest == peak["response"].get<double>());
}

TEST_CASE("filter finds a Keplerian disc at its systemic velocity, and by no other position angle as well", "[cli]") {
  const Scratch scratch;
  const auto cube = line_channels(seen_disc, line_grid, spacing, rest);
  const auto data = write_observation(scratch / "vis.npz", observation_of(cube, 1.0));
  auto arguments = disc_options;
  arguments.insert(arguments.begin(), data);
  for (const auto* more : {"--line-frequency", "230.538e9", "--dtype", "float64"}) arguments.emplace_back(more);
  const auto summary = run_filter(arguments, scratch / "out");
  const auto& found = summary["templates"][0];
  CHECK(found["name"] == "keplerian");
  CHECK(found["n_channels"] == cube.size(0));
  const auto& peak = found["peak"];
  const double middle = line_first + 0.5 * static_cast<double>(cube.size(0) - 1);
  CHECK(peak["middle_channel"].get<double>() == middle);
  CHECK_THAT(peak["velocity_km_s"].get<double>(), WithinAbs((15 - middle) * spacing / rest * 299792.458, 1e-6));
  CHECK_THAT(peak["amplitude"].get<double>(), WithinAbs(1.0, 4 * peak["amplitude_error"].get<double>()));
  *(std::find(arguments.begin(), arguments.end(), "--position-angle") + 1) = "210";  // rotates the other way
  const auto other = run_filter(arguments, scratch / "other")["templates"][0]["peak"];
  CHECK(other["response"].get<double>() < 0.8 * peak["response"].get<double>());
}

TEST_CASE("filter says where the weights look wrong, and where frequencies are not known", "[cli]") {
  const Scratch scratch;
  auto arrays = observation_of(line_cube(), 0.0);
  arrays.erase("frequency");
  const auto one = write_template(scratch, "one.fits", line_cube().narrow(0, 0, 1), {});
  const auto right = run_filter({write_observation(scratch / "right.npz", arrays), "--template", one}, scratch / "right");
  CHECK(right["warnings"].empty());
  CHECK_THAT(right["templates"][0]["noise_rms"].get<double>(), WithinAbs(1, 0.6));
  CHECK(right["templates"][0]["peak"]["frequency_hz"].is_null());
  CHECK(right["line_frequency_hz"].is_null());
  arrays["weight"] = 25 * arrays["weight"];
  const auto wrong = run_filter({write_observation(scratch / "wrong.npz", arrays), "--template", one}, scratch / "wrong");
  REQUIRE(wrong["warnings"].size() == 1);
  CHECK_THAT(wrong["warnings"][0].get<std::string>(), ContainsSubstring("mpol weights"));
  const auto cube = write_template(scratch, "cube.fits", line_cube(), template_frequencies());
  const auto blind = run_filter({(scratch / "right.npz").string(), "--template", cube}, scratch / "blind");
  REQUIRE(blind["warnings"].size() == 1);
  CHECK_THAT(blind["warnings"][0].get<std::string>(), ContainsSubstring("frequencies"));
}

TEST_CASE("filter refuses what it cannot use, in one line, and leaves nothing", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", observation_of(line_cube(), 0.5));
  auto unknown_arrays = observation_of(line_cube(), 0.5);
  unknown_arrays.erase("frequency");
  const auto unknown = write_observation(scratch / "unknown.npz", unknown_arrays);
  const auto cube = write_template(scratch, "cube.fits", line_cube(), template_frequencies());
  const auto out = (scratch / "out").string();
  const auto refuse = [&](std::vector<std::string> arguments, int code, const std::string& words) {
    arguments.insert(arguments.begin(), "filter");
    arguments.insert(arguments.end(), {"-o", out});
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
    CHECK_FALSE(std::filesystem::exists(scratch / "out" / "summary.json"));
  };
  const auto disc = [&](const std::string& file, const std::string& option, const std::string& value) {
    auto arguments = disc_options;
    arguments.insert(arguments.begin(), file);
    arguments.insert(arguments.end(), {option, value});
    return arguments;
  };
  refuse({data}, 2, "--template");
  refuse({"--template", cube}, 2, "DATA");
  refuse({data, "--template", cube, "--mass", "1"}, 2, "--mass");
  refuse({data, "--keplerian", "--mass", "1", "--distance", "140"}, 2, "--outer-radius");
  refuse(disc(data, "--inner-radius", "2"), 2, "--inner-radius");
  refuse(disc(data, "--inner-radius", "0.0001"), 1, "--inner-radius");
  refuse(disc(data, "--outer-radius", "3"), 1, "--npix");
  refuse(disc(data, "--channels", "0,2-8"), 1, "evenly spaced");
  refuse(disc(unknown, "--dtype", "float32"), 1, "--frequency");
  refuse({data, "--template", cube, "--channels", "0-2"}, 1, "channels");
  refuse({data, "--template", (scratch / "missing.fits").string()}, 1, "missing.fits");
  refuse({(scratch / "missing.npz").string(), "--template", cube}, 1, "missing.npz");
  const auto broad =
      write_template(scratch, "broad.fits", line_cube(), rest + 2 * spacing * at::arange(line_width, torch::kFloat64));
  refuse({data, "--template", broad}, 1, "broad.fits");
  const auto dark = write_template(scratch, "dark.fits", 0 * line_cube(), template_frequencies());
  refuse({data, "--template", dark}, 1, "0 everywhere");
  refuse({data, "--template", cube, "--cell-size", "3"}, 1, "cell");
}
