// `mpol image --fit-blocks`, `mpol predict --gains`, and folds of whole blocks.
#include "catch.h"

#include <cmath>
#include <map>
#include <sstream>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/polar.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>

#include "../compare.h"
#include "../random.h"
#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;
using Arrays = std::map<std::string, Tensor>;

/// What is wrong with a window.
struct Fault {
  double east, north, amplitude, weight_scale;
};
const std::vector<Fault> faults = {{0, 0, 1, 1}, {0.03, -0.02, 1.1, 0.53}, {-0.02, 0.01, 0.92, 1.9}};

/// One window of a Gaussian off centre, that suits cells of 0.1" and 32 pixels.
Arrays faulty_window(const Fault& fault, std::int64_t window, std::int64_t nvis = 700) {
  constexpr double weight = 400, arcsec = units::arcsec, size = 0.25;
  const auto seed = static_cast<std::uint64_t>(17 * window);
  const auto radius = uniform({nvis}, torch::kFloat64, seed + 1).sqrt() * (0.4 / (0.1 * arcsec));
  const auto angle = uniform({nvis}, torch::kFloat64, seed + 2) * (2 * units::pi);
  const auto u = radius * angle.cos(), v = radius * angle.sin();
  const auto turn = (u * (0.3 + fault.east) + v * (fault.north - 0.2)) * (-2 * units::pi * arcsec);
  const auto amplitude = (radius.square() * (-2 * std::pow(units::pi * size * arcsec, 2))).exp() * fault.amplitude;
  const auto noise = normal({nvis}, torch::kComplexDouble, seed + 3) * std::sqrt(2 / (weight * fault.weight_scale));
  return {{"uu", u},
          {"vv", v},
          {"data", at::polar(amplitude, turn) + noise},
          {"weight", torch::full({nvis}, weight, torch::kFloat64)},
          {"block", torch::full({nvis}, window, torch::kInt64)},
          {"time", torch::arange(nvis, torch::kFloat64)}};
}

Arrays three_windows() {
  Arrays all;
  for (std::size_t b = 0; b < faults.size(); ++b) {
    for (const auto& [key, array] : faulty_window(faults[b], static_cast<std::int64_t>(b) + 3))
      all[key] = b == 0 ? array : at::cat({all[key], array});
  }
  return all;
}

Words image_words(const std::string& data, const std::filesystem::path& out, const Words& more) {
  Words words = {"image", data, "-o", out.string(), "--cell-size", "0.1", "--npix", "32", "--device", "cpu"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json image_of(const std::string& data, const std::filesystem::path& out, Words more) {
  more.push_back("--json");
  const auto run = run_mpol_here(image_words(data, out, more));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return json::parse(run.out);
}

/// Ratios and differences between blocks are what the data were made with, by their errors.
void check_gains(const json& gains) {
  REQUIRE(gains.size() == 3);
  const auto close = [](double found, double wanted, double error) {
    CAPTURE(found, wanted, error);
    CHECK(std::abs(found - wanted) < 4 * error);
  };
  for (std::size_t b = 1; b < 3; ++b) {
    const auto &one = gains[b], &zero = gains[0];
    const auto value = [](const json& of, const char* key) { return of[key].get<double>(); };
    const auto of_shift = [](const json& of, int axis) {
      return of["shift_arcsec"][static_cast<std::size_t>(axis)].get<double>();
    };
    const double shift_error = std::sqrt(2.0) * one["shift_error_arcsec"][0].get<double>();
    CHECK(shift_error < 0.02);  // a fifth of a pixel
    close(of_shift(one, 0) - of_shift(zero, 0), faults[b].east - faults[0].east, shift_error);
    close(of_shift(one, 1) - of_shift(zero, 1), faults[b].north - faults[0].north, shift_error);
    close(value(one, "amplitude") / value(zero, "amplitude"), faults[b].amplitude, 1.5 * value(one, "amplitude_error"));
    CHECK(value(one, "weight_scale") == Approx(faults[b].weight_scale).epsilon(0.15));
    CHECK(value(one, "shared") > 0.9);
  }
}

}  // namespace

TEST_CASE("gains of windows are found with the image, told and taken out of the data", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", three_windows());
  const auto summary = image_of(data, scratch / "out", {"--fit-blocks", "shift,amplitude,weight"});
  const auto& blocks = summary["blocks"];
  CHECK(blocks["converged"] == true);
  CHECK(blocks["fitted"] == json::parse(R"(["shift", "amplitude", "weight"])"));
  CHECK(blocks["gains"][0]["block"] == "window 3");
  CHECK(blocks["change_at_end"].get<double>() < 0.5);
  CHECK(summary["seconds"]["calibration"].get<double>() > 0);
  check_gains(blocks["gains"]);
  CHECK(summary["reduced_chi_squared"].get<double>() == Approx(1).margin(0.1));
  const auto plain = image_of(data, scratch / "plain", {"--sparsity", "1U", "--tv", "0.3U", "--tv-slope", "0.5U"});
  CHECK_FALSE(plain.contains("blocks"));
  CHECK(plain["reduced_chi_squared"].get<double>() > 1.15);
  CHECK(read_text(scratch / "out" / "report.html").find("<h2>Blocks of data</h2>") != std::string::npos);
  CHECK(read_text(scratch / "out" / "run.toml").find("fit-blocks = \"shift,amplitude,weight\"") != std::string::npos);

  const auto run =
      run_mpol_here({"predict", data, (scratch / "out" / "image.fits").string(), "--gains",
                     (scratch / "out" / "blocks.csv").string(), "-o", (scratch / "calibrated.npz").string(), "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(json::parse(run.out)["chi_squared_per_visibility"].get<double>() ==
        Approx(summary["chi_squared_per_visibility"].get<double>()).epsilon(1e-3));
  const io::NpzReader file(scratch / "calibrated.npz");
  CHECK(same(file.read("block").to(torch::kInt64), three_windows()["block"]));
  const auto mended = image_of((scratch / "calibrated.npz").string(), scratch / "mended", {});
  CHECK(mended["flux_jy"][0].get<double>() == Approx(summary["flux_jy"][0].get<double>()).epsilon(1e-3));
}

TEST_CASE("files of their own are blocks, and so are channels of a continuum", "[cli]") {
  const Scratch scratch;
  std::string first, more;
  for (std::size_t b = 0; b < faults.size(); ++b) {
    auto arrays = faulty_window(faults[b], static_cast<std::int64_t>(b));
    arrays.erase("block"), arrays.erase("time");
    const auto path = write_observation(scratch / ("vis" + std::to_string(b) + ".npz"), arrays);
    if (b == 0) first = path;
    else more += (more.empty() ? "" : ",") + path;
  }
  const auto summary = image_of(first, scratch / "files", {"--more-data", more, "--fit-blocks", "shift,amplitude,weight"});
  CHECK(summary["blocks"]["gains"][2]["block"] == "file 2");
  check_gains(summary["blocks"]["gains"]);

  const auto all = three_windows();
  Arrays channels;
  for (const auto* key : {"uu", "vv", "data", "weight"}) channels[key] = all.at(key).view({3, -1});
  const auto path = write_observation(scratch / "channels.npz", channels);
  const auto by_channel = image_of(path, scratch / "channels",
                                   {"--mode", "continuum", "--blocks", "channel", "--fit-blocks", "shift,amplitude,weight"});
  CHECK(by_channel["blocks"]["gains"][1]["block"] == "channel 1");
  check_gains(by_channel["blocks"]["gains"]);
}

TEST_CASE("a run whose blocks were calibrated goes on with their gains", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", three_windows());
  const Words what = {"--fit-blocks", "shift,weight", "--epochs", "60"};
  const auto summary = image_of(data, scratch / "out", what);
  const auto image = io::read_fits(scratch / "out" / "image.fits").cube;
  std::filesystem::remove(scratch / "out" / "run.toml");  // as if it had been killed while it wrote
  std::filesystem::remove(scratch / "out" / "image.fits");
  auto again = what;
  again.insert(again.end(), {"--resume", "--json"});
  const auto run = run_mpol_here(image_words(data, scratch / "out", again));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto resumed = json::parse(run.out);
  CHECK(resumed["blocks"]["gains"] == summary["blocks"]["gains"]);
  CHECK(resumed["blocks"]["rounds"] == summary["blocks"]["rounds"]);
  CHECK(same(io::read_fits(scratch / "out" / "image.fits").cube, image));
}

TEST_CASE("blocks that cannot be fitted are refused in one line", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", three_windows());
  auto one = faulty_window(faults[0], 1);
  one.erase("block");
  const auto single = write_observation(scratch / "one.npz", one);
  one["block"] = torch::zeros({3}, torch::kInt64);
  const auto foreign = write_observation(scratch / "foreign.npz", one);
  const auto cube = write_observation(scratch / "cube.npz", small_observation(2));
  struct Case {
    std::string data;
    Words more;
    int exit_code;
    std::string words;
  };
  const Words fit = {"--fit-blocks", "shift"};
  const auto with = [&](const Words& more) {
    auto words = fit;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  for (const auto& [path, more, exit_code, words] : std::vector<Case>{
           {data, {"--fit-blocks", "phase"}, 2, "is none of shift, amplitude and weight"},
           {data, {"--fit-blocks", "shift,shift"}, 2, "names one twice"},
           {data, with({"--blocks", "antenna"}), 2, "is no kind of block"},
           {data, with({"--blocks", "time"}), 2, "have no gains"},
           {data, with({"--likelihood", "gridded"}), 2, "mix the samples of blocks"},
           {data, with({"--likelihood", "loose", "--noise", "student"}), 2, "Gaussian noise"},
           {data, with({"--likelihood", "loose", "--batch-size", "50"}), 2, "images of all data"},
           {data, with({"--optimizer", "adam"}), 2, "have converged"},
           {data, with({"--blocks", "observation"}), 1, "do not say of which observation"},
           {single, fit, 1, "the data have one block"},
           {foreign, fit, 1, "one for each sample"},
           {cube, with({"--blocks", "channel", "--mode", "cube"}), 2, "different skies"},
           {cube, with({"--blocks", "channel"}), 2, "different skies"},
       }) {
    CAPTURE(words);
    const auto run = run_mpol_here(image_words(path, scratch / "out", more));
    CHECK(run.exit_code == exit_code);
    CHECK(run.error_names(words));
    CHECK(run.error_lines().size() == 1);
    CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
  }
}

TEST_CASE("gains that are not those of the data are refused", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", three_windows());
  image_of(data, scratch / "out", {"--epochs", "5"});
  const auto names = std::string(
      "block,n_visibilities,east,east_error,north,north_error,amplitude,amplitude_error,weight_scale,weight_scale_error,shared,"
      "significance\n");
  const auto refused = [&](const std::string& text, const std::string& words, int exit_code = 1) {
    write_text(scratch / "blocks.csv", text);
    const auto run = run_mpol_here({"predict", data, (scratch / "out" / "image.fits").string(), "--gains",
                                    (scratch / "blocks.csv").string(), "-o", (scratch / "p.npz").string()});
    CAPTURE(words);
    CHECK(run.exit_code == exit_code);
    CHECK(run.error_names(words));
    CHECK_FALSE(std::filesystem::exists(scratch / "p.npz"));
  };
  refused("x,y\n1,2\n", "is no blocks.csv");
  refused(names, "has no blocks");
  refused(names + "window 3,1,0,0,0,0,1,0,1,0,1\n", "line 2 has 11 fields");
  refused(names + "window 3,1,nan,0,0,0,1,0,1,0,1,9\n", "'nan' is no finite number");
  refused(names + "window 3,1,0,0,0,0,-1,0,1,0,1,9\n", "must be > 0");
  refused(names + "window 3,1,0,0,0,0,1,0,1,0,1,9\n", "window 4");
  refused(names + "antenna 3,1,0,0,0,0,1,0,1,0,1,9\n", "is no kind of block", 2);
}

TEST_CASE("folds are whole blocks, and folds of the other kind check the choice", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", three_windows());
  const auto scan = [&](const std::string& out, Words more) {
    more.insert(more.end(), {"--sparsity", "1U", "--tv", "cv", "--search-points", "3", "--folds", "3", "--json"});
    auto words = image_words(data, scratch / out, more);
    words[0] = "crossval";
    return run_mpol_here(words);
  };
  const auto windows = scan("windows", {"--split", "blocks", "--blocks", "window", "--check-split"});
  INFO(windows.err);
  REQUIRE(windows.exit_code == 0);
  const auto crossval = json::parse(windows.out)["crossval"];
  CHECK(crossval["split"] == "blocks of window");
  const auto& check = crossval["split_check"];
  CHECK(check["split"] == "dartboard");
  CHECK(check["points"].get<int>() >= 3);
  CHECK(check["points"].get<int>() <= 5);
  CHECK(check["agrees"] == (std::abs(check["decades"]["tv"].get<double>()) < 0.51));
  CHECK(check["unit_value"]["tv"].get<double>() == Approx(json::parse(windows.out)["chosen"]["tv"]["unit_value"].get<double>() *
                                                          std::pow(10, check["decades"]["tv"].get<double>())));
  // Each fold holds out one window.
  std::istringstream rows(read_text(scratch / "windows" / "scan.csv"));
  std::string header, row;
  std::getline(rows, header);
  CHECK(std::getline(rows, row));
  CHECK(row.find(",700") != std::string::npos);
  const auto times = scan("times", {"--split", "blocks", "--blocks", "time"});
  CHECK(times.exit_code == 0);
  CHECK(read_text(scratch / "times" / "scan.csv") != read_text(scratch / "windows" / "scan.csv"));
  const auto few = scan("few", {"--split", "blocks", "--blocks", "file"});
  CHECK(few.exit_code == 1);
  CHECK(few.error_names("makes 1 blocks for 3 folds"));
}

TEST_CASE("an image of channels that differ in brightness says so, and what it advises makes them alike", "[cli]") {
  const Scratch scratch;
  const auto simulated = [&](const std::string& index) {
    const auto data = (scratch / (index + ".npz")).string();
    const auto run = run_mpol_here({"simulate", "-o", data, "--antennas", "20", "--integration", "900", "--frequency-ghz",
                                    "217,219,231,233", "--spectral-index", index, "--flux", "1", "--quiet"});
    REQUIRE(run.exit_code == 0);
    return data;
  };
  const auto warnings_of = [&](const std::string& data, const Words& more) {
    Words words = {"image",       data,     "-o",        (scratch / "out").string(),
                   "--overwrite", "--mode", "continuum", "--json",
                   "--cell-size", "0.05",   "--npix",    "96"};
    words.insert(words.end(), more.begin(), more.end());
    const auto run = run_mpol_here(words);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return std::pair(run.err, json::parse(run.out));
  };
  const auto steep = simulated("3");
  const auto [told, wrong] = warnings_of(steep, {});
  CHECK(told.find("the brightness goes as frequency^") != std::string::npos);
  CHECK(told.find("between 217 and 233 GHz") != std::string::npos);
  CHECK(told.find("--fit-blocks amplitude --blocks channel takes it out") != std::string::npos);
  CHECK(wrong["chi_squared_per_visibility"].get<double>() > 2);
  const auto [after, right] = warnings_of(steep, {"--fit-blocks", "amplitude", "--blocks", "channel"});
  CHECK(after.find("frequency^") == std::string::npos);
  CHECK(right["chi_squared_per_visibility"].get<double>() < 1.2);
  CHECK(warnings_of(simulated("0"), {}).first.find("frequency^") == std::string::npos);
}
