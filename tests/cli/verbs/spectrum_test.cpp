#include "catch.h"

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/core/units.h>

#include "observation.h"
#include "picture.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

constexpr std::int64_t spectrum_channels = 4, spectrum_samples = 900;

/// A star whose flux rises, and a disc with a line in channel 2, with noise.
std::map<std::string, Tensor> star_and_line() {
  auto arrays = small_observation(spectrum_channels, spectrum_samples);
  std::vector<Tensor> data;
  for (std::int64_t c = 0; c < spectrum_channels; ++c) {
    const DiscModel star{.shape = DiscShape::point,
                         .flux = 0.1 * static_cast<double>(c + 1),
                         .size = 0,
                         .width = 0,
                         .geometry = {.offset_east = 0.3, .offset_north = -0.1}};
    const DiscModel disc{.shape = DiscShape::gaussian,
                         .flux = c == 2 ? 2.0 : 0.5,
                         .size = 0.8,
                         .width = 0,
                         .geometry = {.inclination = 35 * units::degree, .position_angle = 60 * units::degree}};
    data.push_back(disc_visibilities(star, arrays["uu"], arrays["vv"]) + disc_visibilities(disc, arrays["uu"], arrays["vv"]));
  }
  const auto noise = normal({spectrum_channels, spectrum_samples}, torch::kComplexDouble, 9) * std::sqrt(2.0);
  arrays["data"] = at::stack(data) + noise / arrays["weight"].sqrt();
  arrays["frequency"] = torch::tensor({230e9, 230.5e9, 231e9, 231.5e9}, torch::kFloat64);
  return arrays;
}

}  // namespace

TEST_CASE("spectrum writes the flux of every source in every channel, with its error", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", star_and_line());
  const auto run = run_mpol_here(
      {"spectrum", data, "-o", (scratch / "out").string(), "--sources", "point:0.3,-0.1; gaussian:0.8,35,60", "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == read_text(scratch / "out" / "summary.json"));
  auto names = names_in(scratch / "out");
  std::erase(names, "figures");
  CHECK(names == std::vector<std::string>{"spectrum.csv", "spectrum.png", "summary.json"});
  CHECK(read_png(scratch / "out" / "spectrum.png").width == 1000);

  const auto summary = json::parse(run.out);
  CHECK(summary["n_channels"] == spectrum_channels);
  REQUIRE(summary["sources"].size() == 2);
  CHECK(summary["sources"][0]["name"] == "point:0.3,-0.1");
  const double truth[2][4] = {{0.1, 0.2, 0.3, 0.4}, {0.5, 0.5, 2.0, 0.5}};
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t c = 0; c < 4; ++c) {
      const double flux = summary["sources"][s]["flux_jy"][c], error = summary["sources"][s]["flux_error_jy"][c];
      CAPTURE(s, c, flux, error);
      CHECK(error > 0);
      CHECK(std::abs(flux - truth[s][c]) < 5 * error);
    }
  }
  for (const double reduced : summary["reduced_chi_squared"]) CHECK_THAT(reduced, WithinAbs(1, 0.2));

  std::istringstream table(read_text(scratch / "out" / "spectrum.csv"));
  std::string line;
  std::getline(table, line);
  CHECK(line == "channel,frequency_hz,source,name,flux_jy,error_jy");
  int rows = 0;
  while (std::getline(table, line)) {
    if (rows == 5) CHECK(line.starts_with("2,231000000000,1,\"gaussian:0.8,35,60\","));
    ++rows;
  }
  CHECK(rows == 8);
}

TEST_CASE("spectrum takes a point at the phase centre where nothing is said, and channels by their numbers", "[cli]") {
  const Scratch scratch;
  auto arrays = star_and_line();
  arrays.erase("frequency");
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto run = run_mpol_here({"spectrum", data, "-o", (scratch / "out").string(), "--channels", "1,3"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("point: ") && ContainsSubstring("the mean of 2 channel(s)"));
  CHECK_THAT(read_text(scratch / "out" / "spectrum.csv"), ContainsSubstring("\n0,,0,\"point\","));
}

TEST_CASE("spectrum refuses sources that it cannot use, in one line, and leaves nothing", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", star_and_line());
  const auto refused = [&](const std::string& sources, int code, const std::string& words) {
    const auto run = run_mpol_here({"spectrum", data, "-o", (scratch / "out").string(), "--sources", sources});
    INFO(sources << ": " << run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
    CHECK_FALSE(std::filesystem::exists(scratch / "out"));
  };
  refused("star", 2, "no shape");
  refused("", 2, "--sources");
  refused("point;;point:1", 2, "empty");
  refused("gaussian", 2, "FWHM");
  refused("gaussian:0", 2, "sources");
  refused("gaussian:0.5,95", 2, "sources");
  refused("ring:x", 2, "sources");
  refused("point:1,2,3", 2, "more than 2");
  refused("broad-ring:0.5", 2, "WIDTH");
  refused("point; point", 1, "told apart");
}
