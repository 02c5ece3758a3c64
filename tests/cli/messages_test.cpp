#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

std::string warnings_of(const std::filesystem::path& out) {
  return json::parse(read_text(out / "summary.json"))["warnings"].dump();
}

}  // namespace

TEST_CASE("a frequency in GHz is warned of, and MPoL's key for frequencies is taken", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation();
  arrays["frequencies"] = torch::tensor({230.0}, torch::kFloat64);
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto seen = run_mpol_here({"inspect", data, "--json"});
  CHECK(json::parse(seen.out)["frequencies_hz"] == std::vector<double>{230.0});
  CHECK_THAT(seen.err, ContainsSubstring("warning: a frequency is 230 Hz") && ContainsSubstring("GHz"));
  CHECK(run_mpol_here({"inspect", data, "--frequency", "230e9"}).err.find("GHz") == std::string::npos);
  const auto counted = run_mpol_here(short_run(data, scratch / "out", {"--frequency", "1e9,2e9,3e9"}));
  CHECK(counted.exit_code == 1);
  CHECK(counted.error_names("correct the key `frequency` or --frequency"));
}

TEST_CASE("a start that the precision cannot hold is named with its limit", "[cli][quick]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  for (const auto* start : {"base:1e39", "flat:1e300"}) {
    const auto run = run_mpol_here(short_run(data, scratch / "out", {"--start", start, "--dtype", "float32"}));
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.error_names("float32 holds numbers of up to 3.4e+38"));
  }
}

TEST_CASE("inspect says when it cannot know the scatter, and doubts numbers that look like another unit", "[cli]") {
  const Scratch scratch;
  const auto few = write_observation(scratch / "few.npz", small_observation(1, 2));
  CHECK_THAT(run_mpol_here({"inspect", few}).out, ContainsSubstring("scatter       unknown: no cell"));

  auto arrays = small_observation();
  for (const auto* key : {"uu", "vv"}) arrays[key] = arrays[key] / 1000;
  const auto kilo = write_observation(scratch / "kilo.npz", arrays);
  const auto doubted = run_mpol_here({"inspect", kilo});
  CHECK_THAT(doubted.err, ContainsSubstring("klambda or m") && ContainsSubstring("--uv-unit"));
  CHECK(run_mpol_here({"inspect", kilo, "--quiet"}).err.empty());
  CHECK(run_mpol_here({"inspect", kilo, "--uv-unit", "klambda"}).err.empty());
  CHECK(run_mpol_here({"inspect", kilo, "--uv-unit", "lambda"}).err.empty());
}

TEST_CASE("a file that is not there and a folder are told apart", "[cli][quick]") {
  const Scratch scratch;
  CHECK(run_mpol_here(short_run((scratch / "no.npz").string(), scratch / "out")).error_names("no.npz; is not there"));
  CHECK(run_mpol_here(short_run(scratch.path().string(), scratch / "out")).error_names("is a folder, not a file"));
}

TEST_CASE("a comparison of images with different beams is warned of", "[cli]") {
  const Scratch scratch;
  const mpol::GridCoords coords(0.1, 16);
  const auto write = [&](const std::string& name, double major) {
    const auto header = mpol::io::FitsOptions().beams({{.major = major, .minor = 0.3, .position_angle = 0.4}});
    mpol::io::write_fits(scratch / name, torch::ones({16, 16}, torch::kFloat64), coords, header);
    return (scratch / name).string();
  };
  const auto a = write("a.fits", 0.5), b = write("b.fits", 0.6), c = write("c.fits", 0.5);
  CHECK(run_mpol_here({"compare", a, b, "-o", (scratch / "ab").string()}).error_names("different beams"));
  CHECK_THAT(warnings_of(scratch / "ab"), ContainsSubstring("different beams"));
  CHECK(run_mpol_here({"compare", a, c, "-o", (scratch / "ac").string()}).err.empty());
}

TEST_CASE("a field smaller than the scales of the data is warned of, with one that holds them", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol_here(short_run(data, scratch / "small")).exit_code == 0);
  CHECK_THAT(warnings_of(scratch / "small"), ContainsSubstring("the field of 3.2\\\" is smaller"));
  REQUIRE(run_mpol_here(short_run(data, scratch / "large", {"--npix", "96", "--epochs", "1"})).exit_code == 0);
  CHECK_THAT(warnings_of(scratch / "large"), !ContainsSubstring("the field of"));
}

TEST_CASE("the printed nll and chi^2/(2N) are told apart", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto cells = run_mpol_here(short_run(data, scratch / "gridded"));
  CHECK(cells.out.find("nll         ") == std::string::npos);  // the number of the first line
  const auto exact = run_mpol_here(short_run(data, scratch / "exact", {"--likelihood", "exact"}));
  CHECK_THAT(exact.out, ContainsSubstring("the same chi^2/(2 x ") && ContainsSubstring(" cells)"));
  const auto visibilities =
      run_mpol_here(short_run(data, scratch / "visibilities", {"--likelihood", "exact", "--normalize", "visibilities"}));
  CHECK(visibilities.out.find("nll         ") == std::string::npos);
  const auto none = run_mpol_here(short_run(data, scratch / "none", {"--likelihood", "exact", "--normalize", "none"}));
  CHECK_THAT(none.out, ContainsSubstring("the same chi^2/2\n"));
}
