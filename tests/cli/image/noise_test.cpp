// Weights that nobody gave follow the noise that the fit finds, and how much of the field the source fills.
#include "catch.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/complex.h>
#include <ATen/ops/polar.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/train/checkpoint.h>

#include "compare.h"
#include "observation.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

/// The small observation, whose noise is twice what its weights say.
std::string doubted_observation(const fs::path& path, std::int64_t nchan = 1) {
  auto arrays = small_observation(nchan);
  arrays["weight"] = arrays["weight"] * 4;
  return write_observation(path, arrays);
}

constexpr double flux_of_point = 0.008;  // 20 times the noise

/// A faint point, on the baselines and with the weights of the small observation.
std::string faint_point(const fs::path& path) {
  auto arrays = small_observation();
  const auto& weight = arrays["weight"];
  const auto phase = (arrays["uu"] * 0.5 - arrays["vv"] * 0.3) * (-2 * units::pi * units::arcsec);
  const auto noise = at::complex(normal(weight.sizes(), torch::kFloat64, 14), normal(weight.sizes(), torch::kFloat64, 15));
  arrays["data"] = at::polar(torch::full_like(phase, flux_of_point), phase) + noise / weight.sqrt();
  return write_observation(path, arrays);
}

const Words usual_grid = {"--cell-size", "0.1", "--npix", "32"}, wide_grid = {"--cell-size", "0.06", "--npix", "160"};

Words fit_of(const std::string& data, const fs::path& out, const Words& more = {}, const Words& grid = usual_grid) {
  Words words = {"image", data, "-o", out.string(), "--threads", "1", "--json"};
  words.insert(words.end(), grid.begin(), grid.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json summary_of(const Words& words) {
  const auto run = run_mpol_here(words);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return Json::parse(run.out);
}

Tensor image_in(const fs::path& out) { return io::read_fits(out / "image.fits").cube; }

double units_of(const Json& summary, const std::string& term) { return summary["lambda"][term]["unit_value"]; }

/// Whether the newest checkpoint is of a fit whose weights were set anew, and not to look at what they should be.
bool is_second_fit(const fs::path& out) {
  const auto header = read_checkpoint_header(out / "checkpoint.safetensors");
  return header && header->notes.contains("noise") && !header->notes.contains("looks");
}
/// Whether that is a fit with weights for another noise.
bool is_fit_for_noise(const fs::path& out) {
  return is_second_fit(out) && read_checkpoint_header(out / "checkpoint.safetensors")->notes.at("noise").substr(0, 4) != "1 1 ";
}

}  // namespace

TEST_CASE("weights four times too large make the same image, with lambda of twice the unit", "[cli]") {
  const Scratch scratch;
  const std::string likelihood = GENERATE("exact", "loose");
  const auto plain_data = write_observation(scratch / "plain.npz", small_observation());
  const auto doubted_data = doubted_observation(scratch / "doubted.npz");
  const Words how = {"--likelihood", likelihood, "--scatter-check", "off"};
  const auto plain = summary_of(fit_of(plain_data, scratch / "plain", how));
  CHECK(plain["noise"].is_null());
  const auto doubted = summary_of(fit_of(doubted_data, scratch / "doubted", how));
  CHECK(doubted["noise"]["of_visibilities"].get<double>() == Approx(2).epsilon(0.06));
  CHECK(doubted["noise"]["shared"] == 1);
  CHECK(doubted["noise"]["factor"] == doubted["noise"]["of_visibilities"]);
  for (const auto* term : {"sparsity", "tv", "tv_slope"}) {
    CHECK(units_of(doubted, term) == Approx(2 * units_of(plain, term)).epsilon(0.1));
    CHECK(doubted["lambda"][term]["how"] == "auto");
  }
  CHECK(relative_error(image_in(scratch / "doubted"), image_in(scratch / "plain")) < 0.02);
  CHECK(read_text(scratch / "doubted" / "run.toml").find("sparsity = \"auto\"  # auto: ") != std::string::npos);

  auto given = how;  // a number of units is that number
  for (const auto* option : {"--sparsity", "--tv", "--tv-slope"}) {
    given.emplace_back(option);
    given.emplace_back("1U");
  }
  const auto believed = summary_of(fit_of(doubted_data, scratch / "given", given));
  CHECK(believed["noise"].is_null());
  CHECK(units_of(believed, "tv") == Approx(1));
  given.back() = "auto";
  const auto mixed = summary_of(fit_of(doubted_data, scratch / "mixed", given));
  CHECK(units_of(mixed, "tv") == Approx(1));
  CHECK(units_of(mixed, "tv_slope") == Approx(units_of(doubted, "tv_slope")).epsilon(0.1));

  // Averages of cells lose flux off centre, which is no noise.
  const auto gridded =
      summary_of(fit_of(doubted_data, scratch / "gridded", {"--likelihood", "gridded", "--scatter-check", "off"}));
  CHECK(gridded["noise"].is_null());
  CHECK(units_of(gridded, "tv") == Approx(units_of(plain, "tv")).epsilon(0.1));

  // What is not at its end tells nothing of the noise.
  auto short_of_it = how;
  short_of_it.insert(short_of_it.end(), {"--epochs", "30"});
  CHECK(summary_of(fit_of(doubted_data, scratch / "short", short_of_it))["noise"].is_null());
}

TEST_CASE("a faint point in a wide field has its flux, not that of the noise around it", "[cli]") {
  const Scratch scratch;
  const auto data = faint_point(scratch / "point.npz");
  const auto found = summary_of(fit_of(data, scratch / "found", {}, wide_grid));
  CHECK(found["filled_share"].get<double>() < 0.01);
  CHECK(found["noise"].is_null());
  CHECK(units_of(found, "sparsity") > 0.9);
  CHECK(found["flux_jy"][0].get<double>() == Approx(flux_of_point).epsilon(0.35));
  Words before;  // as if the point filled as much as sources usually do
  const double signal = found["peak_signal_to_noise"].get<double>();
  for (const auto kind : {TermKind::sparsity, TermKind::tv_image, TermKind::tv_slope}) {
    const auto& regularizer = regularizer_of(kind);
    auto option = "--" + regularizer.name;
    std::replace(option.begin(), option.end(), '_', '-');
    before.insert(before.end(), {option, fmt::format("{}U", usual_units(regularizer, signal))});
  }
  const auto believed = summary_of(fit_of(data, scratch / "believed", before, wide_grid));
  CHECK(believed["filled_share"].is_null());
  CHECK(believed["flux_jy"][0].get<double>() > 1.3 * found["flux_jy"][0].get<double>());
  // Whoever gives the weight that would follow gets that, in one fit.
  const auto given = summary_of(fit_of(data, scratch / "given", {"--sparsity", "0.6U", "--tv", "auto"}, wide_grid));
  CHECK(given["filled_share"].is_null());
  CHECK(given["noise"].is_null());
  CHECK(units_of(given, "sparsity") == Approx(0.6));
  CHECK(read_text(scratch / "found" / "report.html").find("of the field stands out of the noise") != std::string::npos);
}

TEST_CASE("of data below zero, and of noise alone, an image says so", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation();
  arrays["data"] = -arrays["data"];
  const auto has_warning = [](const Json& summary, const std::string& words) {
    const auto& warnings = summary["warnings"];
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](const Json& warning) { return warning.get<std::string>().find(words) != std::string::npos; });
  };
  const auto negative = summary_of(fit_of(write_observation(scratch / "negative.npz", arrays), scratch / "negative"));
  CHECK(negative["converged"] == true);
  CHECK(negative["epochs"].get<int>() < 2000);
  CHECK(has_warning(negative, "the data go below zero"));
  const auto& weight = arrays["weight"];
  const auto noise = at::complex(normal(weight.sizes(), torch::kFloat64, 24), normal(weight.sizes(), torch::kFloat64, 25));
  arrays["data"] = noise / weight.sqrt();
  const auto empty = summary_of(fit_of(write_observation(scratch / "noise.npz", arrays), scratch / "noise"));
  CHECK(has_warning(empty, "no source stands out of the noise"));
  CHECK_FALSE(has_warning(empty, "edge"));
  CHECK(empty["flux_jy"][0].get<double>() < 5 / std::sqrt(weight.sum().item<double>()));
}

TEST_CASE("an interrupted second fit goes on as the second, bit for bit", "[cli]") {
  const Scratch scratch;
  const auto* source = GENERATE("point", "doubted", "doubted cube");
  const bool is_point = source == std::string("point"), is_cube = source == std::string("doubted cube");
  const auto data = is_point ? faint_point(scratch / "vis.npz") : doubted_observation(scratch / "vis.npz", is_cube ? 3 : 1);
  Words how = {"--tolerance", is_point ? "1e-3" : "1e-5", "--dtype", "float64", "--checkpoint-interval", "20"};
  if (is_cube) how.insert(how.end(), {"--mode", "cube"});
  const auto is_last_fit = [&](const char* out) {
    return is_point ? is_second_fit(scratch / out) : is_fit_for_noise(scratch / out);
  };
  const auto& grid = is_point ? wide_grid : usual_grid;
  const auto whole = run_mpol(fit_of(data, scratch / "whole", how, grid));
  REQUIRE(whole.exit_code == 0);
  CHECK(is_last_fit("whole"));

  Program program(fit_of(data, scratch / "out", how, grid));
  while (program.running() && !is_last_fit("out")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(SIGTERM);
  const auto ended = program.wait();
  INFO(ended.err);
  REQUIRE(ended.exit_code == 143);
  const auto resumed = run_mpol({"image", "-o", (scratch / "out").string(), "--resume", "--json"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(Json::parse(resumed.out)["lambda"] == Json::parse(whole.out)["lambda"]);
  CHECK(Json::parse(resumed.out)["noise"] == Json::parse(whole.out)["noise"]);
  CHECK(Json::parse(resumed.out)["filled_share"] == Json::parse(whole.out)["filled_share"]);
  if (!is_cube) CHECK(Json::parse(whole.out)["filled_share"].is_null() == !is_point);
  CHECK(read_text(scratch / "out" / "history.csv") == read_text(scratch / "whole" / "history.csv"));
  CHECK(torch::equal(image_in(scratch / "out"), image_in(scratch / "whole")));
}

TEST_CASE("groups of channels find the noise of all", "[cli]") {
  const Scratch scratch;
  const auto data = doubted_observation(scratch / "vis.npz", 4);
  const auto whole = summary_of(fit_of(data, scratch / "whole", {"--mode", "cube"}));
  const auto grouped = summary_of(fit_of(data, scratch / "grouped", {"--mode", "cube", "--channels-at-once", "2"}));
  CHECK(grouped["noise"]["of_visibilities"].get<double>() ==
        Approx(whole["noise"]["of_visibilities"].get<double>()).epsilon(0.05));
  CHECK(units_of(grouped, "tv") == Approx(units_of(whole, "tv")).epsilon(0.1));
  CHECK(relative_error(image_in(scratch / "grouped"), image_in(scratch / "whole")) < 0.02);
}

TEST_CASE("errors that visibilities share raise lambda and the errors of the image, and are told", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation();
  for (auto& [name, array] : arrays) array = array.repeat({4});
  arrays["uu"] = arrays["uu"] * (1 + 1e-4 * torch::arange(2400, torch::kFloat64) / 2400);  // near each other
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto shared = summary_of(fit_of(data, scratch / "shared", {"--samples", "8"}));
  CHECK(shared["noise"]["shared"].get<double>() > 1.4);
  CHECK(shared["errors"]["noise_factor"].get<double>() > 1.2);  // of the second fit; `noise` is what its weights are for
  CHECK(units_of(shared, "sparsity") > 1.2);
  bool is_told = false;
  for (const auto& warning : shared["warnings"]) {
    const auto text = warning.get<std::string>();
    is_told |= text.find("scatters") != std::string::npos && text.find("neighbours share errors") != std::string::npos;
  }
  CHECK(is_told);
  const auto alone =
      summary_of(fit_of(write_observation(scratch / "alone.npz", small_observation()), scratch / "alone", {"--samples", "8"}));
  CHECK(alone["noise"]["shared"] == 1);
  CHECK(alone["errors"]["noise_factor"] == alone["noise"]["factor"]);
  CHECK(shared["errors"]["flux_error_jy"][0].get<double>() > 0.5 * alone["errors"]["flux_error_jy"][0].get<double>());
}
