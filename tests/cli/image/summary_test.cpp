#include "catch.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/verb.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

/// Three channels that are not evenly spaced: whatever writes them to FITS warns.
std::string uneven_observation(const Scratch& scratch) {
  auto arrays = small_observation(3);
  arrays["frequency"] = torch::tensor({230e9, 231e9, 233e9}, torch::kFloat64);
  return write_observation(scratch / "vis.npz", arrays);
}

json summary_in(const std::filesystem::path& folder) { return json::parse(read_text(folder / "summary.json")); }

}  // namespace

TEST_CASE("every summary.json says how the verb ran", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = [&scratch](const std::string& name) { return (scratch / name).string(); };
  const auto image = out("image/image.fits");
  const auto on_grid = [&data](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {data, "--cell-size", "0.1", "--npix", "32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::map<std::string, std::vector<std::string>> calls = {
      {"crossval", on_grid({"--folds", "2", "--search-points", "2", "--epochs", "5", "--scatter-check", "off"})},
      {"dirty", on_grid({})},
      {"inspect", on_grid({})},
      {"weights", on_grid({})},
      {"geometry", on_grid({})},
      {"radial", on_grid({"--inclination", "0", "--radius", "1.5", "--points", "30"})},
      {"spectrum", {data}},
      {"filter", {data, "--template", image}},
      {"profile", {image}},
      {"polar", {image}},
      {"match", {image, "--generate", "disc:0.3"}},
      {"deproject", {image}},
      {"pbcor", {image, "--fwhm", "20"}},
      {"convolve", {image, "--bmaj", "0.5"}},
      {"compare", {image, image}}};
  REQUIRE(run_mpol_here(short_run(data, out("image"), {"--threads", "1", "--quiet"})).exit_code == 0);
  for (const std::string verb : mpol::cli::verb_names) {
    INFO(verb);
    const bool has_folder = run_mpol_here({verb, "--help"}).out.find(" Folder for ") != std::string::npos;
    REQUIRE(has_folder == (calls.contains(verb) || verb == "image"));
    if (!has_folder) continue;
    if (verb != "image") {
      std::vector<std::string> arguments = {verb};
      arguments.insert(arguments.end(), calls.at(verb).begin(), calls.at(verb).end());
      arguments.insert(arguments.end(), {"-o", out(verb), "--quiet", "--threads", "1"});
      const auto run = run_mpol_here(arguments);
      INFO(run.err);
      REQUIRE(run.exit_code == 0);
    }
    const auto summary = summary_in(scratch / verb);
    CHECK(summary["threads"] == 1);
    CHECK_FALSE(summary["instruction_set"].get<std::string>().empty());
    CHECK(summary["versions"].contains("mpol_cpp"));
    CHECK(summary["warnings"].is_array());
  }
  CHECK(summary_in(scratch / "image").contains("seed"));
}

TEST_CASE("a warning is said once and is in summary.json, with --quiet too", "[cli]") {
  const Scratch scratch;
  const auto data = uneven_observation(scratch);
  for (const bool quiet : {false, true}) {
    const auto out = scratch / (quiet ? "quiet" : "loud");
    const auto run = run_mpol_here(short_run(data, out, {quiet ? "--quiet" : "--verbose"}));
    REQUIRE(run.exit_code == 0);
    const auto warnings = summary_in(out)["warnings"].get<std::vector<std::string>>();
    const auto of_frequencies = std::count_if(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("not evenly spaced") != std::string::npos;
    });
    CHECK(of_frequencies == 1);
    for (const auto& warning : warnings) CHECK(warning.find(".mpol.partial") == std::string::npos);
    const auto lines = run.error_lines();
    const auto said = std::count_if(lines.begin(), lines.end(),
                                    [](const std::string& line) { return line.find("not evenly spaced") != std::string::npos; });
    CHECK(said == (quiet ? 0 : 1));
  }
}

TEST_CASE("the summary of one run does not hold the warnings of another in the same process", "[cli]") {
  const Scratch scratch;
  REQUIRE(run_mpol_here(short_run(uneven_observation(scratch), scratch / "uneven")).exit_code == 0);
  const auto even = write_observation(scratch / "even.npz", small_observation());
  REQUIRE(run_mpol_here(short_run(even, scratch / "even")).exit_code == 0);
  CHECK(summary_in(scratch / "even")["warnings"].dump().find("evenly") == std::string::npos);
}
