// `mpol crossval`, and a LAMBDA of cv on `mpol image`.
#include "catch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "../compare.h"
#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;
using Row = std::map<std::string, double>;

Words few_points(const std::string& verb, const std::string& data, const std::filesystem::path& out, const Words& more) {
  Words words = {verb,      data, "-o",       out.string(), "--cell-size",     "0.1", "--npix", "32", "--json",
                 "--folds", "3",  "--device", "cpu",        "--scatter-check", "off"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json run_of(const std::string& verb, const std::string& data, const std::filesystem::path& out, const Words& more = {}) {
  const auto run = run_mpol_here(few_points(verb, data, out, more));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return json::parse(run.out);
}

Tensor image_in(const std::filesystem::path& out) { return io::read_fits(out / "image.fits").cube; }

std::vector<Row> scan_in(const std::filesystem::path& out) {
  std::istringstream text(read_text(out / "scan.csv"));
  const auto cut = [](const std::string& line) {
    std::vector<std::string> values;
    std::istringstream stream(line);
    for (std::string value; std::getline(stream, value, ',');) values.push_back(value);
    return values;
  };
  std::string line;
  std::getline(text, line);
  const auto names = cut(line);
  std::vector<Row> rows;
  while (std::getline(text, line)) {
    const auto values = cut(line);
    REQUIRE(values.size() == names.size());
    Row row;
    for (std::size_t i = 0; i < values.size(); ++i) row[names[i]] = std::stod(values[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

TEST_CASE("crossval takes the lambdas of least score, and makes the image that they make", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto summary = run_of("crossval", data, scratch / "scan");
  for (const auto* name : {"image.fits", "scan.csv", "scan.png", "gallery.png", "summary.json", "run.toml", "scan.safetensors"}) {
    CAPTURE(name);
    CHECK(std::filesystem::exists(scratch / "scan" / name));
  }
  const auto rows = scan_in(scratch / "scan");
  const auto points = summary["crossval"]["points"].get<std::size_t>();
  REQUIRE(rows.size() == 3 * points);
  CHECK(summary["fits"] == rows.size());
  CHECK(points >= 5);
  CHECK(summary["crossval"]["folds"] == 3);
  CHECK(summary["seconds"]["crossval"].get<double>() > 0);
  std::map<int, std::pair<double, double>> sums;
  for (const auto& row : rows) {
    auto& [chi_squared, samples] = sums[static_cast<int>(row.at("point"))];
    chi_squared += row.at("chi_squared");
    samples += row.at("samples");
    CHECK(row.at("lambda_tv") == Approx(row.at("c_tv") * summary["chosen"]["tv"]["unit"].get<double>()));
    CHECK(row.at("score") == Approx(row.at("chi_squared") / (2 * row.at("samples"))));
  }
  const auto less = [](const auto& a, const auto& b) {
    return a.second.first / a.second.second < b.second.first / b.second.second;
  };
  const auto best = std::min_element(sums.begin(), sums.end(), less);
  CHECK(summary["crossval"]["score"].get<double>() == Approx(best->second.first / (2 * best->second.second)));
  CHECK(summary["chosen"].size() == 2);
  CHECK(summary["lambda"]["tv_slope"]["how"] == "auto");  // of a fit that names none, and not searched
  const auto& row = rows[3 * static_cast<std::size_t>(best->first)];
  for (const auto* name : {"sparsity", "tv"}) {
    const auto& chosen = summary["chosen"][name];
    CHECK(chosen["unit_value"].get<double>() == Approx(row.at(std::string("c_") + name)));
    CHECK(summary["lambda"][name]["how"] == "cross-validated");
    CHECK(summary["lambda"][name]["value"] == chosen["value"]);
  }
  CHECK(read_text(scratch / "scan" / "run.toml").find("tv = \"cv\"  # cross-validated: ") != std::string::npos);

  const auto lambda = [&](const char* name) { return summary["chosen"][name]["value"].dump(); };
  const auto given =
      run_mpol_here({"image", data, "-o", (scratch / "given").string(), "--cell-size", "0.1", "--npix", "32", "--quiet",
                     "--scatter-check", "off", "--sparsity", lambda("sparsity"), "--tv", lambda("tv"), "--tv-slope", "0.5U"});
  CHECK(given.exit_code == 0);
  CHECK(same(image_in(scratch / "given"), image_in(scratch / "scan")));

  run_of("image", data, scratch / "image", {"--sparsity", "cv", "--tv", "cv"});
  CHECK(same(image_in(scratch / "image"), image_in(scratch / "scan")));
  CHECK(read_text(scratch / "image" / "scan.csv") == read_text(scratch / "scan" / "scan.csv"));
  const auto again = run_mpol_here(
      {"image", "--config", (scratch / "scan" / "run.toml").string(), "-o", (scratch / "again").string(), "--quiet"});
  CHECK(again.exit_code == 0);
  CHECK(read_text(scratch / "again" / "scan.csv") == read_text(scratch / "scan" / "scan.csv"));
  CHECK(same(image_in(scratch / "again"), image_in(scratch / "scan")));
}

TEST_CASE("a run whose cross-validation was done goes on with what that chose", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const Words grid = {"--tv", "0.1U:1U:3"};
  const auto whole = run_of("crossval", data, scratch / "scan", grid);
  CHECK(whole["fits"] == 9);
  CHECK(whole["chosen"].size() == 1);
  // As if it had been killed after the scan.
  std::filesystem::create_directory(scratch / "killed");
  std::filesystem::copy_file(scratch / "scan" / "scan.safetensors", scratch / "killed" / "scan.safetensors");
  auto resume = grid;
  resume.emplace_back("--resume");
  const auto resumed = run_of("crossval", data, scratch / "killed", resume);
  CHECK(resumed["fits"] == 0);
  CHECK(resumed["chosen"] == whole["chosen"]);
  CHECK(same(image_in(scratch / "killed"), image_in(scratch / "scan")));
  // A finished run stays as it is, and one without a search that replaces it leaves nothing of it.
  const auto finished = few_points("crossval", data, scratch / "scan", resume);
  CHECK(run_mpol_here(finished).exit_code == 0);
  const auto replaced = run_mpol_here({"image", data, "-o", (scratch / "scan").string(), "--cell-size", "0.1", "--npix", "32",
                                       "--quiet", "--scatter-check", "off", "--overwrite"});
  CHECK(replaced.exit_code == 0);
  for (const auto* name : {"scan.csv", "scan.png", "gallery.png", "scan.safetensors"}) {
    CAPTURE(name);
    CHECK_FALSE(std::filesystem::exists(scratch / "scan" / name));
  }
}

TEST_CASE("every likelihood, noise and kind of image can be cross-validated", "[cli]") {
  const Scratch scratch;
  const auto line = write_observation(scratch / "line.npz", small_observation(2));
  const Words two = {"--search", "random", "--search-points", "2"};
  int number = 0;
  for (const auto& more : std::vector<Words>{{"--likelihood", "gridded"},
                                             {"--likelihood", "loose"},
                                             {"--likelihood", "loose", "--noise", "student", "--epochs", "40"},
                                             {"--mode", "continuum"},
                                             {"--mode", "continuum", "--likelihood", "gridded", "--split", "blocks"},
                                             {"--split", "dartboard", "--folds", "2"},
                                             {"--dtype", "float64", "--normalize", "visibilities"},
                                             {"--optimizer", "adam", "--epochs", "40"},
                                             {"--tv-channel", "cv", "--epochs", "40"}}) {
    auto words = two;
    words.insert(words.end(), more.begin(), more.end());
    CAPTURE(more);
    const auto summary = run_of("crossval", line, scratch / std::to_string(number++), words);
    const double score = summary["crossval"]["score"].get<double>();
    CHECK(std::isfinite(score));
    CHECK(score > 0.5);
    CHECK(score < 100);
  }
}

TEST_CASE("a choice at the end of its range, and a search that ran out of points, are said in words", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto warned = [](const json& summary, const std::string& words) {
    const auto& warnings = summary["warnings"];
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](const json& warning) { return warning.get<std::string>().find(words) != std::string::npos; });
  };
  const auto beyond = run_of("crossval", data, scratch / "beyond", {"--sparsity", "100U:1000U:2", "--tv", "0"});
  CHECK(beyond["at_bound"] == json({"sparsity"}));
  CHECK(warned(beyond, "the lambda of sparsity that cross-validation chose is at the end"));
  const auto line = write_observation(scratch / "line.npz", small_observation(2));
  const auto channels = run_of("crossval", line, scratch / "line", {"--tv-channel", "100U:1000U:2", "--epochs", "20"});
  CHECK(channels["at_bound"] == json({"tv_channel"}));
  CHECK(warned(channels, "give --tv-channel a range beyond it"));
  const auto few = run_of("crossval", data, scratch / "few", {"--search-points", "2"});
  CHECK(few["crossval"]["exhausted"] == true);
  CHECK(warned(few, "the search ended with its 2 points"));
}

TEST_CASE("scores of white noise choose with two fits to a point, and say their degrees of freedom and diagnostics", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto of_score = [&](const std::string& score, Words more = {}) {
    Words words = {"crossval", data,      "-o",  (scratch / score).string(), "--cell-size", "0.1", "--npix", "32",
                   "--json",   "--score", score, "--scatter-check",          "off"};
    words.insert(words.end(), more.begin(), more.end());
    const auto run = run_mpol_here(words);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return json::parse(run.out);
  };
  const auto sure = of_score("sure"), gcv = of_score("gcv");
  for (const auto& [name, summary] : {std::pair("sure", sure), std::pair("gcv", gcv)}) {
    CAPTURE(name);
    const auto rows = scan_in(scratch / name);
    CHECK(summary["fits"] == 2 * rows.size());
    CHECK(summary["crossval"]["score_kind"] == name);
    CHECK(summary["crossval"]["split"] == "white noise");
    double least = 1e30, nearest = 1e30, at_nearest = 0;
    for (const auto& row : rows) {
      const double numbers = 2 * row.at("samples"), chi_squared = row.at("chi_squared"), df = row.at("degrees_of_freedom");
      const double expected =
          name == std::string("sure") ? (chi_squared + 2 * df) / numbers : chi_squared / numbers / std::pow(1 - df / numbers, 2);
      CHECK(row.at("score") == Approx(expected));
      CHECK(row.at("train_score") == Approx(chi_squared / numbers));
      least = std::min(least, row.at("score"));
      if (std::abs(std::log(row.at("train_score"))) < nearest) {
        nearest = std::abs(std::log(row.at("train_score")));
        at_nearest = row.at("train_score");
      }
    }
    CHECK(summary["crossval"]["score"].get<double>() == Approx(least));
    CHECK(summary["crossval"]["discrepancy"]["chi_squared_per_number"].get<double>() == Approx(at_nearest));
    CHECK(summary["crossval"]["l_curve_corner"].contains("tv"));
    CHECK(summary["lambda"]["tv"]["how"] == (name == std::string("sure") ? "by SURE" : "by GCV"));
  }
  for (const auto& more : std::vector<Words>{{"--likelihood", "gridded"}, {"--optimizer", "adam", "--epochs", "30"}}) {
    CAPTURE(more);
    auto words = more;
    words.insert(words.end(), {"--search-points", "2", "--overwrite"});
    CHECK(of_score("gcv", words)["crossval"]["degrees_of_freedom"].get<double>() > 0);
  }
  const auto refused = run_mpol_here({"crossval", data, "-o", (scratch / "no").string(), "--cell-size", "0.1", "--npix", "32",
                                      "--likelihood", "loose", "--noise", "student", "--score", "sure"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("are for Gaussian noise") != std::string::npos);
}
