#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"

#include <ATen/ops/atan2.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>

#include "observation.h"
#include "picture.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

std::vector<std::string> with_radius(std::vector<std::string> options) {
  options.insert(options.end(), {"--radius", "1.2"});
  return options;
}
const std::vector<std::string> tilted_options = with_radius(tilted_disc_options);

/// A ring without any symmetry in the plane of a disc, turned by so many degrees from the major axis to the East.
Tensor uneven_ring(const DiscGeometry& geometry, double turn, bool mirrored, double harmonic = 2) {
  const auto x = tilted_coords.sky_x() - geometry.offset_east, y = tilted_coords.sky_y() - geometry.offset_north;
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle);
  const auto minor = (x * c - y * s) / std::cos(geometry.inclination), major = x * s + y * c;
  auto azimuth = at::atan2(minor, major) - turn * units::degree;
  if (mirrored) azimuth = -azimuth;
  const auto around = 1 + 0.5 * at::cos(azimuth - 20 * units::degree) + 0.6 * at::cos(harmonic * (azimuth - 70 * units::degree));
  return at::exp(-0.5 * ((at::hypot(minor, major) - 0.8) / 0.15).square()) * around;
}

std::vector<std::string> run_of_match(const std::filesystem::path& image, const std::filesystem::path& out,
                                      std::vector<std::string> more) {
  std::vector<std::string> arguments = {"match", image.string(), "-o", out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> extended(std::vector<std::string> options, const std::vector<std::string>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// Rows of match.csv, by the names of its columns.
std::vector<std::map<std::string, std::string>> rows_of(const std::filesystem::path& path) {
  std::istringstream text(read_text(path));
  std::string line, cell;
  std::vector<std::string> names;
  std::getline(text, line);
  for (std::istringstream cells(line); std::getline(cells, cell, ',');) names.push_back(cell);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(text, line)) {
    std::map<std::string, std::string> row;
    std::istringstream cells(line);
    for (const auto& name : names) std::getline(cells, row[name], ',');
    rows.push_back(row);
  }
  return rows;
}

/// An image of two channels: the second template of three turned by 50 degrees, and the first mirrored and turned by 200.
void write_case(const Scratch& scratch) {
  io::write_fits(scratch / "image.fits",
                 at::stack({uneven_ring(tilted_disc, 50, false), 3 * uneven_ring(tilted_disc, 200, true, 3)}), tilted_coords,
                 io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
  const auto templates = at::stack({uneven_ring({}, 0, false, 3), uneven_ring({}, 0, false), uneven_ring({}, 0, false, 5)});
  io::write_fits(scratch / "lib.fits", templates, tilted_coords, io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
  io::write_npz_arrays(scratch / "images.npz", {{"templates", templates}, {"cell_size", torch::tensor(0.05, torch::kFloat64)}});
  const PolarIntegrator integrator(
      tilted_coords, PolarIntegratorOptions().radii(even_edges(0, 1.2, 24)).azimuths(even_edges(0, 2 * units::pi, 360)));
  io::write_npz_arrays(scratch / "polar.npz", {{"polar", integrator.integrate(templates).mean}});
}

}  // namespace

TEST_CASE("match finds templates of every kind of file, turned and mirrored, in the plane of the disc", "[cli][match]") {
  const Scratch scratch;
  write_case(scratch);
  for (const std::string library : {"lib.fits", "images.npz", "polar.npz"}) {
    const auto out = scratch / ("out_" + library);
    const auto run = run_mpol_here(run_of_match(
        scratch / "image.fits", out, extended(tilted_options, {"--templates", (scratch / library).string(), "--json"})));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const auto summary = json::parse(run.out);
    CHECK(run.out == read_text(out / "summary.json"));
    CHECK(summary["n_templates"] == 3);
    CHECK(summary["nr"] == 24);
    CHECK(summary["nphi"] == 360);
    const auto& channels = summary["channels"];
    REQUIRE(channels.size() == 2);
    CHECK(channels[0]["template"] == 1);
    CHECK(channels[0]["name"] == library + "[1]");
    CHECK(channels[0]["mirrored"] == false);
    CHECK_THAT(channels[0]["angle_deg"].get<double>(), WithinAbs(80, 0.5));  // 30 + 50
    CHECK(channels[0]["score"].get<double>() > 0.99);
    CHECK(channels[1]["template"] == 0);
    CHECK(channels[1]["mirrored"] == true);
    CHECK_THAT(channels[1]["angle_deg"].get<double>(), WithinAbs(230, 0.5));
    CHECK(channels[1]["score"].get<double>() > 0.99);
    const auto rows = rows_of(out / "match.csv");
    REQUIRE(rows.size() == 6);  // three templates of each channel, though five were asked for
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].at("channel") == std::to_string(i / 3));
      CHECK(rows[i].at("rank") == std::to_string(i % 3));
    }
    CHECK(rows[3].at("name") == library + "[0]");
    CHECK(rows[3].at("mirrored") == "1");
    CHECK(std::stoi(rows[3].at("angle_deg")) == Approx(230).margin(1));
    auto names = names_in(out);
    std::erase(names, "figures");
    CHECK(names == std::vector<std::string>{"match.csv", "match.png", "summary.json"});
    CHECK(read_png(out / "match.png").width == 1520);
  }
}

TEST_CASE("match takes points as templates, and whole bins, no mirrors and a part of the templates where asked", "[cli][match]") {
  const Scratch scratch;
  auto spots = torch::zeros({64, 64}, torch::kFloat64);  // on a sky face on: 1" to the North, 0.5" to the East
  spots[52][31] = 2;
  spots[32][21] = 1;
  io::write_fits(scratch / "spots.fits", spots, tilted_coords, io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
  // The same turned by 90 degrees to the East; a single point; and a point beyond all bins.
  const auto points =
      torch::tensor({1.0, 90.5, 2.0, 0.5, 180.5, 1.0, 1.0, 0.5, 1.0, 9.0, 0.5, 1.0}, torch::kFloat64).view({2, 2, 3});
  io::write_npz_arrays(scratch / "points.npz", {{"points", points}});
  const std::vector<std::string> options = {
      "--templates", (scratch / "points.npz").string(), "--nphi", "120", "--score", "cosine", "--weights", "even"};
  const auto found = [&](const std::string& out, const std::vector<std::string>& more) {
    const auto run =
        run_mpol_here(run_of_match(scratch / "spots.fits", scratch / out, extended(options, extended(more, {"--json"}))));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return json::parse(run.out)["channels"][0];
  };
  const auto best = found("bins", {"--angles", "bins", "--mirrors", "none"});
  CHECK(best["template"] == 0);
  CHECK_THAT(best["angle_deg"].get<double>(), WithinAbs(270, 3.01));
  const double turns = best["angle_deg"].get<double>() / 3;
  CHECK(std::abs(turns - std::round(turns)) < 1e-9);
  CHECK(rows_of(scratch / "bins" / "match.csv").size() == 2);
  found("kept", {"--keep", "1", "--n-best", "1"});
  CHECK(rows_of(scratch / "kept" / "match.csv").size() == 1);
}

TEST_CASE("match makes the shapes that it is asked for, with every value of a range", "[cli][match]") {
  const Scratch scratch;
  const double width = 0.1 / std::sqrt(8 * std::log(2.0));
  const auto ring = at::exp(-0.5 * ((at::hypot(tilted_coords.sky_x(), tilted_coords.sky_y()) - 0.7) / width).square());
  io::write_fits(scratch / "ring.fits", ring, tilted_coords);
  const auto run =
      run_mpol_here(run_of_match(scratch / "ring.fits", scratch / "out",
                                 {"--generate", "disc:0.5,ring:0.4..1..5:0.1,arc:0.7:0.1:60..120..2,spiral:0.5:0.1:20:1..2..2",
                                  "--n-best", "20", "--json"}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto summary = json::parse(run.out);
  CHECK(summary["n_templates"] == 10);
  CHECK(summary["channels"][0]["name"] == "ring:0.7:0.1");
  CHECK(summary["channels"][0]["score"].get<double>() > 0.97);
  CHECK(summary["channels"][0]["mirrored"] == false);
  std::vector<std::string> names(10);
  for (const auto& row : rows_of(scratch / "out" / "match.csv")) names.at(std::stoul(row.at("template"))) = row.at("name");
  CHECK(names == std::vector<std::string>{"disc:0.5", "ring:0.4:0.1", "ring:0.55:0.1", "ring:0.7:0.1", "ring:0.85:0.1",
                                          "ring:1:0.1", "arc:0.7:0.1:60", "arc:0.7:0.1:120", "spiral:0.5:0.1:20:1",
                                          "spiral:0.5:0.1:20:2"});
}

TEST_CASE("match refuses what it cannot use, in one line, and leaves nothing", "[cli][match]") {
  const Scratch scratch;
  write_case(scratch);
  write_text(scratch / "words.npz", "this is no archive");
  io::write_npz_arrays(scratch / "other.npz", {{"u", torch::ones({3})}});
  io::write_npz_arrays(scratch / "no_cell.npz", {{"templates", torch::ones({1, 8, 8})}});
  io::write_npz_arrays(scratch / "odd.npz", {{"templates", torch::ones({1, 9, 9})}, {"cell_size", torch::tensor(0.1)}});
  io::write_npz_arrays(scratch / "flat.npz", {{"polar", torch::ones({8, 8})}});
  io::write_npz_arrays(scratch / "nan.npz", {{"polar", torch::full({1, 8, 8}, NAN)}});
  io::write_npz_arrays(scratch / "pairs.npz", {{"points", torch::ones({1, 8, 2})}});
  const auto refused = [&](const std::vector<std::string>& options, int code, const std::string& words) {
    const auto run = run_mpol_here(run_of_match(scratch / "image.fits", scratch / "out", options));
    INFO(run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
    CHECK_FALSE(std::filesystem::exists(scratch / "out"));
  };
  const auto file = [&](const std::string& name) { return std::vector<std::string>{"--templates", (scratch / name).string()}; };
  refused({}, 2, "--templates");
  refused(file("missing.npz"), 1, "missing.npz");
  refused(file("words.npz"), 1, "words.npz");
  refused(file("other.npz"), 1, "other.npz");
  refused(file("no_cell.npz"), 1, "cell_size");
  refused(file("odd.npz"), 1, "9 x 9");
  refused(file("flat.npz"), 1, "(8, 8)");
  refused(file("nan.npz"), 1, "not finite");
  refused(file("pairs.npz"), 1, "2 numbers");
  refused(extended(file("polar.npz"), {"--nr", "10"}), 1, "24 x 360");
  refused(extended(file("lib.fits"), {"--radius", "9"}), 2, "--radius");
  refused(extended(file("lib.fits"), {"--n-best", "0"}), 2, "n-best");
  refused(extended(file("lib.fits"), {"--score", "sum"}), 2, "score");
  refused(extended(file("lib.fits"), {"--keep", "2", "--keep-fraction", "0.5"}), 2, "--keep-fraction");
  refused(extended(file("lib.fits"), {"--keep-fraction", "0"}), 2, "keep-fraction");
  refused(extended(file("lib.fits"), {"--memory-limit", "1e-6"}), 2, "--memory-limit");
  refused(extended(file("lib.fits"), {"--nr", "100000", "--nphi", "100000"}), 2, "--nphi");
  refused(extended(file("lib.fits"), {"--channels", "2"}), 2, "--channels");
  for (const std::string shape :
       {"square:1", "ring:1", "ring:1:0.1:3", "ring:x:0.1", "ring:0:0.1", "disc:1..2", "disc:1..2..1", "disc:1..2..1.5",
        "spiral:1:0.1:20:1.5", "spiral:1:0.1:0:1", "arc:1:0.1:400", "disc:1,,", "ring:0.1..1..1000:0.1..1..1000"}) {
    refused({"--generate", shape}, 2, "--generate");
  }
}
