// Data that do not fit into memory, and folders of .npy files, by the program.
#include "catch.h"

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/units.h>

#include "../npy_files.h"
#include "../random.h"
#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using Json = nlohmann::json;

namespace {

Json summary_of(const std::filesystem::path& out) { return Json::parse(read_text(out / "summary.json")); }

/// 80 MB of visibilities in float32, as a folder, for cells of 0.05" and 64 pixels.
std::string large_observation(const std::filesystem::path& folder) {
  constexpr std::int64_t nvis = 4'000'000;
  const double longest = 0.9 / (2 * 0.05 * mpol::units::arcsec) * (1 - 1.0 / 64);
  const auto spread = [&](std::uint64_t seed) { return (2 * uniform({nvis}, torch::kFloat32, seed) - 1) * longest; };
  write_npy_folder(folder, {{"uu", spread(1)},
                            {"vv", spread(2)},
                            {"data", normal({nvis}, torch::kComplexFloat, 3) * 0.1},
                            {"weight", uniform({nvis}, torch::kFloat32, 4) + 0.5}});
  return folder.string();
}

}  // namespace

TEST_CASE("data that do not fit beside the fit stream from the disk, to the same image", "[cli][streaming]") {
  const Scratch scratch;
  const auto data = large_observation(scratch / "vis");
  const auto image_of = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"image",       data,   "-o",       (scratch / out).string(),
                                          "--cell-size", "0.05", "--npix",   "64",
                                          "--device",    "cpu",  "--epochs", "5",
                                          "--optimizer", "adam"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto outcome = run_mpol(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome;
  };
  const auto in_memory = image_of("memory", {}), streamed = image_of("disk", {"--memory-limit", "0.5"});
  CHECK_THAT(streamed.out, ContainsSubstring("streams     the samples take 76 MiB"));
  CHECK_THAT(in_memory.out, !ContainsSubstring("streams"));
  // With the same header but for the command line, which has another length.
  const auto image_bytes = [&](const std::string& out) {
    const auto file = read_text(scratch / out / "image.fits");
    constexpr std::size_t pixels = 64 * 64 * sizeof(float), record = 2880;
    return file.substr(file.size() - (pixels + record - 1) / record * record);
  };
  CHECK(image_bytes("disk") == image_bytes("memory"));
  const auto of_memory = summary_of(scratch / "memory"), of_disk = summary_of(scratch / "disk");
  CHECK(of_disk["memory_bytes"]["samples_on_disk"] == 80e6);
  CHECK(of_memory["memory_bytes"]["samples_on_disk"] == 0);
  CHECK(of_disk["chi_squared_per_visibility"] == of_memory["chi_squared_per_visibility"]);
  CHECK(of_disk["memory_bytes"]["peak"].get<double>() <= of_disk["memory_bytes"]["estimated"].get<double>());
  CHECK(of_disk["memory_bytes"]["estimated"].get<double>() <= 0.5 * 0x1p30);
}

TEST_CASE("data that fit neither into memory nor on the disk are refused with both", "[cli][streaming]") {
  const Scratch scratch;
  const auto data = large_observation(scratch / "vis");
  RunOptions options;
  options.environment = {"TMPDIR=" + (scratch / "missing").string()};
  const auto outcome = run_mpol({"image", data, "-o", (scratch / "out").string(), "--cell-size", "0.05", "--npix", "64",
                                 "--device", "cpu", "--memory-limit", "0.5"},
                                options);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.error_names("neither in memory nor on disk"));
  CHECK(outcome.error_names("set TMPDIR"));
}

TEST_CASE("every verb that reads visibilities takes a folder of .npy files for the archive", "[cli][streaming]") {
  const Scratch scratch;
  const auto arrays = small_observation(1, 600);
  const auto archive = write_observation(scratch / "vis.npz", arrays);
  write_npy_folder(scratch / "vis", arrays);
  const auto folder = (scratch / "vis").string();
  const std::vector<std::string> grid = {"--cell-size", "0.1", "--npix", "32"};
  const auto run = [&](const std::string& verb, const std::string& data, const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> arguments = {verb, data};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (!out.empty()) arguments.insert(arguments.end(), {"-o", (scratch / out).string()});
    auto outcome = run_mpol(arguments);
    INFO(verb << ": " << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome;
  };
  auto fit = grid;
  fit.insert(fit.end(), {"--epochs", "3", "--optimizer", "adam", "--device", "cpu"});
  run("image", archive, "image_npz", fit);
  run("image", folder, "image_npy", fit);
  CHECK(summary_of(scratch / "image_npy")["loss"] == summary_of(scratch / "image_npz")["loss"]);
  run("dirty", archive, "dirty_npz", grid);
  run("dirty", folder, "dirty_npy", grid);
  CHECK(summary_of(scratch / "dirty_npy")["channels"] == summary_of(scratch / "dirty_npz")["channels"]);
  run("weights", archive, "weights_npz", grid);
  run("weights", folder, "weights_npy", grid);
  CHECK(summary_of(scratch / "weights_npy")["channels"] == summary_of(scratch / "weights_npz")["channels"]);
  auto of_archive = Json::parse(run("inspect", archive, "", {"--json"}).out),
       of_folder = Json::parse(run("inspect", folder, "", {"--json"}).out);
  CHECK(of_archive["uv_lambda"] == of_folder["uv_lambda"]);
  const auto image = (scratch / "image_npz" / "image.fits").string();
  run("predict", archive, "from_npz.npz", {image});
  run("predict", folder, "from_npy.npz", {image});
  CHECK(read_text(scratch / "from_npy.npz") == read_text(scratch / "from_npz.npz"));
  run("profile", folder, "profile", {"--bin-width", "20"});
  run("geometry", folder, "geometry", {});
  run("radial", folder, "radial_npy", {"--inclination", "20", "--radius", "1.5"});
  run("radial", archive, "radial_npz", {"--inclination", "20", "--radius", "1.5"});
  CHECK(read_text(scratch / "radial_npy" / "radial.csv") == read_text(scratch / "radial_npz" / "radial.csv"));
  run("plot", folder, "vis.png", {});
}
