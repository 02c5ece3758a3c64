#include "catch.h"

#include <cstdlib>
#include <filesystem>
#include <regex>

#include <ATen/ops/arange.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/report/html.h>
#include <mpol_cpp/core/units.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

using Arrays = std::map<std::string, Tensor>;

/// The warnings of `mpol image` on such data, in one text.
std::string warnings_about(const Arrays& arrays, const std::vector<std::string>& more = {"--npix", "64"}) {
  const Scratch scratch;
  std::vector<std::string> arguments = {
      "image", write_observation(scratch / "vis.npz", arrays), "-o", (scratch / "out").string(), "--cell-size", "0.1", "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::string text;
  const auto summary = json::parse(read_text(scratch / "out" / "summary.json"));
  for (const auto& warning : summary["warnings"]) text += warning.get<std::string>() + "\n";
  return text;
}

/// The observation with a point of a flux at an offset, Jy and arcsec.
Arrays with_point(Arrays arrays, double flux, double east, double north) {
  const auto phase = -2 * mpol::units::pi * mpol::units::arcsec * (arrays["uu"] * east + arrays["vv"] * north);
  arrays["data"] = arrays["data"] + at::polar(at::full_like(phase, flux), phase);
  return arrays;
}

/// Without the baselines below a length, wavelengths.
Arrays without_short(Arrays arrays, double shortest) {
  const auto keep = at::hypot(arrays["uu"], arrays["vv"]) >= shortest;
  for (auto& [name, values] : arrays) values = values.index({keep});
  return arrays;
}

std::string bundled(const std::string& name) { return (std::filesystem::path(MPOL_DATA_DIR) / name).string(); }

}  // namespace

TEST_CASE("a good observation of a source in the field has no warnings", "[cli]") {
  CHECK(warnings_about(small_observation(1, 3000), {"--npix", "128"}) == "");
  CHECK(warnings_about(small_observation(2, 1500), {"--npix", "128"}) == "");
}

TEST_CASE("weights and residuals of windows and of files stand apart", "[cli]") {
  const Scratch scratch;
  // Window 7 is in two stretches, and its weights are four times too large.
  auto arrays = small_observation(1, 3000);
  const auto sample = at::arange(3000);
  const auto wrong = (sample < 500).logical_or(sample >= 2500);
  arrays["weight"] = at::where(wrong, 4 * arrays["weight"], arrays["weight"]);
  arrays["block"] = at::where(wrong, 7, 2).to(torch::kInt64);
  const auto data = write_observation(scratch / "windows.npz", arrays);
  const auto parts_of = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"image", data, "-o", (scratch / out).string(), "--cell-size", "0.1", "--npix", "64"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return json::parse(read_text(scratch / out / "summary.json"));
  };
  const auto check = [](const json& part, const std::string& name, std::int64_t samples, double sigma) {
    CAPTURE(part.dump());
    CHECK(part["name"] == name);
    CHECK(part["samples"] == samples);
    CHECK_THAT(part["sigma_factor"].get<double>(), WithinAbs(sigma, 0.12 * sigma));
    CHECK_THAT(part["weight_factor"].get<double>(), WithinAbs(1 / (sigma * sigma), 0.25 / (sigma * sigma)));
  };
  const auto summary = parts_of("windows", {});
  REQUIRE(summary["parts"].size() == 2);
  check(summary["parts"][0], "spw 7", 1000, 2);
  check(summary["parts"][1], "spw 2", 2000, 1);
  const auto mean = arrays["weight"].index({wrong}).mean().item<double>();
  CHECK_THAT(summary["parts"][0]["mean_weight"].get<double>(), WithinAbs(mean, 1e-6 * mean));
  CHECK_THAT(summary["warnings"].dump(), ContainsSubstring("those of spw 7 too large by a factor of"));
  CHECK_THAT(read_text(scratch / "windows" / "report.html"), ContainsSubstring("<td>spw 7</td>"));

  auto rest = small_observation(1, 900);
  const auto more = write_observation(scratch / "more.npz", rest);
  const auto joined = parts_of("joined", {"--more-data", more});
  REQUIRE(joined["parts"].size() == 3);
  check(joined["parts"][0], "windows.npz, spw 7", 1000, 2);
  check(joined["parts"][1], "windows.npz, spw 2", 2000, 1);
  check(joined["parts"][2], "more.npz", 900, 1);

  CHECK_FALSE(parts_of("cells", {"--likelihood", "gridded"}).contains("parts"));
}

TEST_CASE("each doubt is found in a simulation that has it", "[cli]") {
  const auto good = small_observation(1, 3000);
  auto changed = good;
  changed["weight"] = 4 * good.at("weight");
  CHECK_THAT(warnings_about(changed), ContainsSubstring("too large by a factor of"));
  changed["weight"] = good.at("weight") / 4;
  CHECK_THAT(warnings_about(changed), Catch::Matchers::Matches("[^]*too small by a factor of (3.[89]|4.[01])[^]*"));
  changed = good;
  changed["data"] = at::where(at::arange(3000).remainder(50) == 0, good.at("data") + 0.2, good.at("data"));
  CHECK_THAT(warnings_about(changed), ContainsSubstring("beyond four sigma") && ContainsSubstring("--noise student"));
  CHECK_THAT(warnings_about(with_point(good, 0.5, 8, -3)),
             ContainsSubstring("flux outside of the field") && ContainsSubstring("East") && ContainsSubstring("South"));
  CHECK_THAT(warnings_about(good, {"--npix", "16"}), ContainsSubstring("of its peak at the edge"));
  CHECK_THAT(warnings_about(without_short(good, 3e5)), ContainsSubstring("of the image's flux"));
  CHECK_THAT(warnings_about(good, {"--npix", "64", "--tv", "300U"}), ContainsSubstring("the residual image still holds"));
  CHECK_THAT(warnings_about(good, {"--npix", "64", "--cell-size", "0.12"}), ContainsSubstring("across the finest fringe"));
}

TEST_CASE("the report is one page that needs nothing else", "[cli]") {
  const Scratch scratch;
  const auto out = scratch / "out";
  const auto run = run_mpol({"image", bundled("hd142527_band9.npz"), "-o", out.string()});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto page = read_text(out / "report.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.ends_with("</html>\n"));
  for (const auto* foreign : {"http:", "https:", "<script", "src=\"/", "@import", "url("}) {
    INFO(foreign);
    CHECK(page.find(foreign) == std::string::npos);
  }
  for (const auto* part :
       {"prefers-color-scheme: dark", "@media print", "What was chosen", "Data", "Fit", "Regularisers", "Settings", "--cell-size",
        "mpol image", "hd142527_band9.npz", "seconds", "χ²", "beam of the dirty image"}) {
    INFO(part);
    CHECK(page.find(part) != std::string::npos);
  }
  const auto summary = json::parse(read_text(out / "summary.json"));
  REQUIRE_FALSE(summary["warnings"].empty());
  for (const auto& warning : summary["warnings"])
    CHECK(page.find(mpol::cli::html::escaped(warning.get<std::string>())) != std::string::npos);
  if (std::filesystem::exists(out / "summary.png")) {
    CHECK(page.find("data:image/png;base64,") != std::string::npos);
    const std::regex figure("<svg viewBox[^>]*>"), alternative("role=\"img\" aria-label=\"[^\"]{10,}\"");
    int figures = 0;
    for (std::sregex_iterator found(page.begin(), page.end(), figure), end; found != end; ++found, ++figures)
      CHECK(std::regex_search(found->str(), alternative));
    CHECK(figures == 13);
  }
}

TEST_CASE("a cross-validation's report has its points", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol_here({"crossval", data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32",
                                  "--folds", "2", "--search-points", "3", "--epochs", "50"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto page = read_text(scratch / "out" / "report.html");
  CHECK(page.find("Cross-validation") != std::string::npos);
  CHECK(page.find("<td>chosen</td>") != std::string::npos);
}

TEST_CASE("without gnuplot the report stands without pictures, and says so", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol(short_run(data, scratch / "out"), {.environment = {"PATH=/nowhere"}});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto page = read_text(scratch / "out" / "report.html");
  CHECK(page.find("Pictures are missing") != std::string::npos);
  CHECK(page.find("data:image/png") == std::string::npos);
  CHECK(page.find("Settings") != std::string::npos);
}

TEST_CASE("texts stand in a page as they are", "[cli][quick]") {
  using namespace mpol::cli;
  CHECK(html::escaped("<b> & \"it's\"") == "&lt;b&gt; &amp; &quot;it&#39;s&quot;");
  CHECK(html::png_address("") == "data:image/png;base64,");
  CHECK(html::png_address("M") == "data:image/png;base64,TQ==");
  CHECK(html::png_address("Ma") == "data:image/png;base64,TWE=");
  CHECK(html::png_address("Man") == "data:image/png;base64,TWFu");
  CHECK(html::png_address("\xff\xfe\xfd\xfc") == "data:image/png;base64,//79/A==");
  CHECK_THAT(html::table({"a<"}, {{"<script>"}}), !ContainsSubstring("<script>"));
}
