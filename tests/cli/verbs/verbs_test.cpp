#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/io/fits.h>

#include "compare.h"
#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

TEST_CASE("the program explains itself", "[cli]") {
  const auto version = run_mpol({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out.starts_with("mpol 0."));
  const auto parts = run_mpol({"--version", "--verbose"});
  CHECK(parts.exit_code == 0);
  std::map<std::string, std::string> words;  // of each part
  std::istringstream lines(parts.out);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    REQUIRE(line.size() > 18);
    words[line.substr(0, line.find_last_not_of(' ', 17) + 1)] = line.substr(18);
  }
  const std::string number = R"(\d+\.\d+(\.\d+)?)", absent = "not built in: build with -D[A-Z_=]+";
  const std::map<std::string, std::string> expected = {{"mpol", number},
                                                       {"libtorch", number + ".*"},
                                                       {"compiler", "(GCC |.*[Cc]lang ).*" + number + ".*"},
                                                       {"C library", "(glibc " + number + "|not glibc)"},
                                                       {"kernels", R"((portable|avx2|avx512) \(built in: .*\))"},
                                                       {"cuda", "(built in, runtime " + number + "|" + absent + ")"},
                                                       {"nccl", "(" + number + ", loaded where .*|not found: .*)"},
                                                       {"mpi", "(.*" + number + ".*, loaded where .*|" + absent + ")"},
                                                       {"measurement sets", "(by casacore " + number + "|" + absent + ")"},
                                                       {"cfitsio", number},
                                                       {"libzip", number},
                                                       {"zlib", number + ".*"},
                                                       {"fmt", number},
                                                       {"nlohmann-json", number},
                                                       {"CLI11", number},
                                                       {"toml++", number},
                                                       {"figures", "(gnuplot " + number + R"( \(/.*\)|no gnuplot here: .*))"}};
  for (const auto& [part, pattern] : expected) {
    CAPTURE(part, words[part], pattern);
    CHECK(std::regex_match(words[part], std::regex(pattern)));
  }
  CHECK(words.size() == expected.size());
  CHECK(run_mpol({"--verbose", "--version"}).out == parts.out);
  CHECK(run_mpol({"--verbose"}).exit_code == 2);
  const auto nothing = run_mpol({});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.error_names("image"));
  const auto unknown = run_mpol({"imagine"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.error_lines().size() == 1);
  CHECK(unknown.error_names("imagine"));
  for (const std::string verb : mpol::cli::verb_names) {
    const auto help = run_mpol_here({verb, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(help.out.find("Example:\n  mpol " + verb) != std::string::npos);
  }
}

TEST_CASE("dirty writes image, beam, figure and a summary per channel", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const std::vector<std::string> weighting =
      GENERATE(std::vector<std::string>{"natural"}, std::vector<std::string>{"uniform"},
               std::vector<std::string>{"briggs", "--robust", "-0.5"}, std::vector<std::string>{"briggs", "--taper", "0.4"},
               std::vector<std::string>{"natural", "--unit", "Jy/arcsec2"});
  std::vector<std::string> arguments = {"dirty", data,     "-o", "dirty",  "--cell-size",
                                        "0.1",   "--npix", "64", "--json", "--weighting"};
  arguments.insert(arguments.end(), weighting.begin(), weighting.end());
  const auto run = run_mpol(arguments, {.folder = scratch.path()});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == read_text(scratch / "dirty" / "summary.json"));
  const auto summary = json::parse(run.out);
  REQUIRE(summary["channels"].size() == 2);
  for (const auto* key : {"beam_area_arcsec2", "bmaj_arcsec", "bmin_arcsec", "bpa_deg", "peak_sidelobe", "noise"}) {
    CHECK(summary["channels"][1][key].is_number());
  }
  const auto image = mpol::io::read_fits(scratch / "dirty" / "dirty.fits");
  CHECK(image.unit == (weighting.back() == "Jy/arcsec2" ? "Jy/arcsec2" : "Jy/beam"));
  CHECK(image.cube.size(0) == 2);
  const auto beam = mpol::io::read_fits(scratch / "dirty" / "beam.fits");
  CHECK_THAT(beam.cube[0][32][31].item<double>(), WithinAbs(1, 1e-6));
  CHECK(std::filesystem::exists(scratch / "dirty" / "dirty.png"));
  std::string history;
  for (const auto& line : image.history) history += line + "\n";
  for (const auto* words :
       {"mpol dirty, version", "vis.npz\"", "cell-size = 0.1", "npix = 64", "imaging = \"exact\"", "weighting = "})
    CHECK(history.find(words) != std::string::npos);
  CHECK(run_mpol(arguments, {.folder = scratch.path()}).exit_code == 1);
}

TEST_CASE("dirty makes images of the samples, or of cells on request", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const mpol::GridCoords coords(0.1, 64);
  const auto samples = mpol::io::read_npz(data);
  const auto image_of = [&](const std::string& name, const std::vector<std::string>& imaging) {
    std::vector<std::string> arguments = {"dirty",  data, "-o",     (scratch / name).string(), "--cell-size", "0.1",
                                          "--npix", "64", "--quiet"};
    arguments.insert(arguments.end(), imaging.begin(), imaging.end());
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(json::parse(read_text(scratch / name / "summary.json"))["imaging"] == (imaging.empty() ? "exact" : imaging.back()));
    return mpol::io::read_fits(scratch / name / "dirty.fits").cube;
  };
  const auto expected = [&](mpol::Imaging imaging) {
    return mpol::DirtyImager(coords, samples, mpol::DirtyImagerOptions().imaging(imaging)).image();
  };
  const auto exact = image_of("default", {});
  CHECK(relative_error(exact, expected(mpol::Imaging::exact)) < 1e-6);
  CHECK(torch::equal(image_of("exact", {"--imaging", "exact"}), exact));
  const auto cells = image_of("cells", {"--imaging", "cells"});
  CHECK(relative_error(cells, expected(mpol::Imaging::cells)) < 1e-6);
  CHECK(relative_error(cells, exact) > 1e-3);
}

TEST_CASE("inspect says what the scatter in cells tells of the weights, whichever way they are wrong", "[cli]") {
  const Scratch scratch;
  const auto right = small_observation(1, 20000);
  const std::vector<std::pair<double, std::string>> cases = {{1, "as the weights say"},
                                                             {4, "too large by a factor of"},
                                                             {0.25, "too small by a factor of"},
                                                             {1e-6, "the data have no noise of their own"}};
  for (const auto& [factor, words] : cases) {
    auto arrays = right;
    arrays["weight"] = arrays["weight"] * factor;
    const auto run = run_mpol_here({"inspect", write_observation(scratch / "vis.npz", arrays)});
    INFO(run.out << run.err);
    CHECK(run.exit_code == 0);
    for (const auto& other : cases) CHECK((run.out.find(other.second) != std::string::npos) == (other.second == words));
  }
}

TEST_CASE("inspect says what is there and which grid suits it", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation(2);
  arrays["frequency"] = torch::tensor({230e9, 231e9}, torch::kFloat64);
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto run = run_mpol({"inspect", data, "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto found = json::parse(run.out);
  CHECK(found["n_channels"] == 2);
  CHECK(found["n_visibilities"] == 600);
  CHECK(found["uv_unit"] == "lambda");
  CHECK(found["frequencies_hz"] == std::vector<double>{230e9, 231e9});
  const double cell_size = found["suggestion"]["cell_size"];
  const std::int64_t npix = found["suggestion"]["npix"];
  CHECK(npix % 2 == 0);
  CHECK(cell_size * static_cast<double>(npix) > 3);
  const mpol::DataAverager averager(mpol::GridCoords(cell_size, npix), mpol::io::read_npz(data),
                                    mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off));
  CHECK_THAT(found["scatter"]["real"].get<double>(), WithinRel(averager.scatter().real, 1e-9));
  CHECK_THAT(found["scatter"]["imag"].get<double>(), WithinRel(averager.scatter().imag, 1e-9));

  const auto words = run_mpol({"inspect", data});
  CHECK(words.exit_code == 0);
  CHECK(words.out.find("--cell-size") != std::string::npos);

  // What it suggests can be imaged.
  const auto image = run_mpol({"image", data, "-o", (scratch / "out").string(), "--cell-size", std::to_string(cell_size),
                               "--npix", std::to_string(npix), "--epochs", "2"});
  INFO(image.err);
  CHECK(image.exit_code == 0);
}

TEST_CASE("devices lists the CPU first", "[cli]") {
  const auto run = run_mpol({"devices", "--json"});
  REQUIRE(run.exit_code == 0);
  const auto devices = json::parse(run.out);
  CHECK(devices[0]["device"] == "cpu");
  CHECK(run_mpol({"devices"}).out.starts_with("cpu"));
}

TEST_CASE("simulate looks for its folders first, and leaves no truth without visibilities", "[cli]") {
  const Scratch scratch;
  const auto simulate = [&](const std::filesystem::path& out, const std::filesystem::path& truth,
                            const RunOptions& options = {}) {
    return run_mpol(
        {"simulate", "--antennas", "30", "--integration", "600", "--npix", "32", "-o", out.string(), "--truth", truth.string()},
        options);
  };
  for (const bool truth : {true, false}) {
    const auto there = scratch / "there", absent = scratch / "absent" / "file";
    const auto refused = simulate(truth ? there : absent, truth ? absent : there);
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(refused.error_names("create its folder first"));
    CHECK(names_in(scratch.path()).empty());
  }
  RunOptions small_disk;
  small_disk.largest_file_bytes = 20'000;  // holds the truth of 8640 bytes, not these visibilities
  const auto full = simulate(scratch / "vis.npz", scratch / "truth.fits", small_disk);
  INFO(full.err);
  CHECK(full.exit_code == 1);
  CHECK(names_in(scratch.path()).empty());
}
