// Cubes whose channels are fitted one group after another.
#include "catch.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/run/part_errors.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/train/checkpoint.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using Json = nlohmann::json;

namespace {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

Words extended_by(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json numbers_of_run(const fs::path& out) { return Json::parse(read_text(out / "summary.json")); }

Words cube_run(const std::string& data, const fs::path& out, const Words& more) {
  return extended_by(
      {"image", data, "-o", out.string(), "--cell-size", "0.1", "--npix", "32", "--device", "cpu", "--threads", "1"}, more);
}

Outcome run_to_end(const Words& words) {
  auto outcome = run_mpol(words);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome;
}

/// Images, losses and counts of two runs, to a tolerance.
void check_same_cube(const fs::path& out, const fs::path& reference, double tolerance) {
  const auto own_image = mpol::io::read_fits(out / "image.fits").cube, image = mpol::io::read_fits(reference / "image.fits").cube;
  CHECK_THAT(((own_image - image).abs().max() / image.abs().max()).item<double>(), WithinAbs(0, tolerance));
  const auto own = numbers_of_run(out), wanted = numbers_of_run(reference);
  for (const auto* key : {"n_visibilities", "n_cells", "normalizer", "stop_reason", "likelihood"}) {
    INFO(key);
    CHECK(own[key] == wanted[key]);
  }
  for (const auto& [name, value] : wanted["loss"].items())
    CHECK(own["loss"][name].get<double>() == Approx(value).epsilon(tolerance));
  CHECK(own["chi_squared"].get<double>() == Approx(wanted["chi_squared"]).epsilon(tolerance));
  for (const auto& [name, value] : wanted["lambda"].items()) CHECK(own["lambda"][name] == value);
}

std::vector<double> numbers_of_table(const fs::path& history) {
  std::vector<double> numbers;
  auto text = read_text(history);
  std::replace(text.begin(), text.end(), ',', '\n');
  std::istringstream words(text);
  for (std::string word; std::getline(words, word);) {
    if (!word.empty() && (std::isdigit(static_cast<unsigned char>(word[0])) != 0 || word[0] == '-'))
      numbers.push_back(std::stod(word));
  }
  return numbers;
}

}  // namespace

TEST_CASE("groups of channels make the image of all together", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(5));
  const auto manner = GENERATE(Words{"--likelihood", "exact"}, Words{"--likelihood", "gridded"}, Words{"--likelihood", "loose"},
                               Words{"--normalize", "visibilities"}, Words{"--normalize", "none", "--learning-rate", "0.01"});
  auto options = extended_by({"--dtype", "float64", "--optimizer", "adam", "--epochs", "30"}, manner);
  if (manner.back() == "exact") options = extended_by(options, mask_and_start(scratch.path(), 5));
  run_to_end(cube_run(data, scratch / "whole", options));
  const auto run = run_to_end(cube_run(data, scratch / "groups", extended_by(options, {"--channels-at-once", "2"})));
  CHECK_THAT(run.out, ContainsSubstring("3 groups of at most 2 channels are fitted one after another (asked for)"));
  CHECK_THAT(run.out, ContainsSubstring("channels 0 to 1 of 5:") && ContainsSubstring("channel 4 of 5:"));
  check_same_cube(scratch / "groups", scratch / "whole", 1e-7);  // images are written in float32
  const auto own = numbers_of_table(scratch / "groups" / "history.csv"),
             wanted = numbers_of_table(scratch / "whole" / "history.csv");
  REQUIRE(own.size() == wanted.size());
  REQUIRE(own.size() > 100);
  for (std::size_t i = 0; i < own.size(); ++i) CHECK(own[i] == Approx(wanted[i]).epsilon(1e-9));
  CHECK(numbers_of_run(scratch / "groups")["channels_at_once"] == 2);
  CHECK_FALSE(numbers_of_run(scratch / "whole").contains("channels_at_once"));
}

TEST_CASE("groups that converge each for itself end at the optimum of all", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  const Words options = {"--dtype", "float64", "--tolerance", "1e-5"};
  run_to_end(cube_run(data, scratch / "whole", options));
  run_to_end(cube_run(data, scratch / "groups", extended_by(options, {"--channels-at-once", "1"})));
  check_same_cube(scratch / "groups", scratch / "whole", 1e-3);
  const auto summary = numbers_of_run(scratch / "groups");
  CHECK(summary["converged"] == true);
  CHECK(summary["gap"].get<double>() >= 0);
  const auto lines = read_text(scratch / "groups" / "history.csv");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == summary["epochs"].get<std::int64_t>() + 1);
}

TEST_CASE("a cube that memory does not hold is fitted in groups of as many channels as it does", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(6));
  const Words options = {"--npix", "192", "--cell-size", "0.05", "--dtype", "float64", "--epochs", "20"};
  const auto whole = numbers_of_run([&] {
    run_to_end(cube_run(data, scratch / "whole", options));
    return scratch / "whole";
  }());
  CHECK_FALSE(whole.contains("channels_at_once"));
  const double all = whole["memory_bytes"]["estimated"].get<double>();
  const double limit = 0.75 * all;
  const auto run =
      run_to_end(cube_run(data, scratch / "groups", extended_by(options, {"--memory-limit", fmt::format("{}", limit / 0x1p30)})));
  CHECK_THAT(run.out, ContainsSubstring("fitted one after another (memory does not hold the fit of all)"));
  const auto summary = numbers_of_run(scratch / "groups");
  const auto at_once = summary["channels_at_once"].get<std::int64_t>();
  CHECK(at_once >= 2);
  CHECK(at_once <= 4);
  const auto choice = std::find_if(summary["choices"].begin(), summary["choices"].end(),
                                   [](const Json& each) { return each["option"] == "channels-at-once"; });
  CHECK(choice != summary["choices"].end());
  CHECK(summary["memory_bytes"]["estimated"].get<double>() <= limit);
  CHECK(summary["memory_bytes"]["peak"].get<double>() <= summary["memory_bytes"]["estimated"].get<double>());
  // What joins channels keeps them together.
  const auto joined =
      run_mpol(cube_run(data, scratch / "joined",
                        extended_by(options, {"--tv-channel", "1e-4", "--memory-limit", fmt::format("{}", limit / 0x1p30)})));
  CHECK(joined.exit_code == 1);
  CHECK(joined.error_names("--memory-limit"));
}

TEST_CASE("a run that is interrupted in its second group goes on to what an uninterrupted one gives", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(4));
  const Words options = {
      "--dtype", "float64", "--optimizer", "adam", "--epochs", "4000", "--channels-at-once", "2", "--checkpoint-interval", "50"};
  run_to_end(cube_run(data, scratch / "straight", options));
  Program program(cube_run(data, scratch / "out", options));
  const auto second = scratch / "out" / "channels" / "0002" / "checkpoint.safetensors";
  while (program.running() && !fs::exists(second)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  program.send(SIGTERM);
  const auto ended = program.wait();
  INFO(ended.err);
  REQUIRE(ended.exit_code == 143);
  CHECK(ended.error_names("epochs of channels 2 to 3 of 4; --resume continues"));
  REQUIRE(fs::exists(second));
  REQUIRE(mpol::read_checkpoint(second)->epochs < 4000);
  const auto other = run_mpol(cube_run(data, scratch / "out", extended_by(options, {"--resume", "--channels-at-once", "3"})));
  CHECK(other.exit_code == 2);
  CHECK(other.error_names("the run to resume has 2 at a time"));
  // Without the option, too: memory may have changed meanwhile.
  Words same = extended_by(options, {"--resume"});
  same.erase(std::find(same.begin(), same.end(), "--channels-at-once"),
             std::find(same.begin(), same.end(), "--checkpoint-interval"));
  run_to_end(cube_run(data, scratch / "out", same));
  for (const auto* name : {"image.fits", "residual.fits", "history.csv"}) {
    INFO(name);
    CHECK((read_text(scratch / "out" / name) == read_text(scratch / "straight" / name)));
  }
  // More epochs continue all groups.
  run_to_end(cube_run(data, scratch / "out", extended_by(options, {"--resume", "--epochs", "4010"})));
  CHECK(numbers_of_run(scratch / "out")["epochs"] == 4010);
  CHECK(mpol::read_checkpoint(second)->epochs == 4010);
}

TEST_CASE("errors of groups are those of all channels together, and are kept while a run is interrupted", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  const auto likelihood = GENERATE("exact", "gridded");
  const Words options = {"--dtype", "float64", "--likelihood", likelihood, "--scatter-check", "off"};
  const auto map_of = [&](const char* run, const char* name) { return mpol::io::read_fits(scratch / run / name).cube; };
  run_to_end(cube_run(data, scratch / "whole", options));
  const auto groups = extended_by(options, {"--channels-at-once", "1"});
  run_to_end(cube_run(data, scratch / "groups", groups));
  const auto own = numbers_of_run(scratch / "groups"), wanted = numbers_of_run(scratch / "whole");
  CHECK_FALSE(own.contains("why_no_errors"));
  CHECK(own["errors"]["samples"] == 4);
  CHECK(own["errors"]["noise_factor"].get<double>() == Approx(wanted["errors"]["noise_factor"]).epsilon(1e-2));
  const auto error = map_of("groups", "error.fits"), of_whole = map_of("whole", "error.fits");
  REQUIRE(error.sizes() == of_whole.sizes());
  for (int channel = 0; channel < 3; ++channel) {  // other draws of noise in all channels but the first
    const double ratio = (error[channel].square().mean() / of_whole[channel].square().mean()).sqrt().item<double>();
    CHECK(ratio > 0.5);
    CHECK(ratio < 2);
    for (const auto* key : {"flux_error_jy", "error_factor", "share_below_error"}) CHECK(own["errors"][key].size() == 3);
  }
  CHECK_THAT(((error[0] - of_whole[0]).abs().max() / of_whole[0].max()).item<double>(), WithinAbs(0, 0.2));

  // As after an interruption in the last group: the errors of those before are read, and the result is the same.
  const auto errors_of = [&](const char* run) { return scratch / run / "channels" / "0001" / "errors.safetensors"; };
  CHECK_FALSE(fs::exists(errors_of("groups")));
  Program program(cube_run(data, scratch / "stopped", groups));
  while (program.running() && !fs::exists(errors_of("stopped"))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(SIGTERM);
  const auto ended = program.wait();
  INFO(ended.err);
  REQUIRE(ended.exit_code == 143);
  REQUIRE(fs::exists(errors_of("stopped")));
  // A damaged file is as good as none.
  write_text(scratch / "stopped" / "errors.safetensors", "not of this format");
  const auto resumed = run_to_end(cube_run(data, scratch / "stopped", extended_by(groups, {"--resume"})));
  CHECK_THAT(resumed.err, ContainsSubstring("errors of these channels are sampled anew"));
  CHECK(map_of("stopped", "error.fits").equal(error));
  CHECK(numbers_of_run(scratch / "stopped")["errors"] == own["errors"]);
  CHECK_FALSE(fs::exists(errors_of("stopped")));
  CHECK_FALSE(fs::exists(scratch / "stopped" / "errors.safetensors"));

  const Words samples = {"--channels-at-once", "2", "--samples", "6"};
  run_to_end(cube_run(data, scratch / "samples", extended_by(options, samples)));
  CHECK(numbers_of_run(scratch / "samples")["errors"]["samples"] == 6);
  for (const auto* name : {"error.fits", "std.fits", "mean.fits", "lower.fits", "upper.fits"})
    CHECK(map_of("samples", name).size(0) == 3);
}

TEST_CASE("errors that a group has kept are those that it had, and none of another version", "[cli][quick]") {
  const Scratch scratch;
  const mpol::cli::ImageOptions options;
  mpol::cli::PartErrors errors;
  double number = 1;
  errors.maps.visit_maps([&](const char*, torch::Tensor& map) { map = torch::full({2, 4, 4}, number++, torch::kFloat64); });
  errors.maps.visit_numbers([&](std::vector<double>& numbers) {
    numbers = {number, -number};
    ++number;
  });
  errors.noise = {{.of_samples = 1.5, .shared = 1.25}, {.of_samples = 2, .shared = 3}};
  mpol::cli::keep_errors(scratch.path(), errors, options, 72);
  auto kept = mpol::cli::kept_errors(scratch.path(), options, 72);
  REQUIRE(kept);
  std::vector<torch::Tensor> maps;
  errors.maps.visit_maps([&](const char*, torch::Tensor& map) { maps.push_back(map); });
  std::size_t place = 0;
  kept->maps.visit_maps([&](const char* name, torch::Tensor& map) {
    INFO(name);
    CHECK(map.equal(maps[place++]));
  });
  std::vector<std::vector<double>> numbers;
  errors.maps.visit_numbers([&](const std::vector<double>& own) { numbers.push_back(own); });
  place = 0;
  kept->maps.visit_numbers([&](const std::vector<double>& own) { CHECK(own == numbers[place++]); });
  REQUIRE(kept->noise.size() == 2);
  CHECK(kept->noise[1].shared == 3);
  CHECK_FALSE(mpol::cli::kept_errors(scratch.path(), options, 86));  // of another fit

  auto file = mpol::read_safetensors(scratch / "errors.safetensors");
  auto& rows = file.tensors.at("numbers");
  rows = rows.narrow(1, 0, rows.size(1) - 1).contiguous();
  mpol::write_safetensors(scratch / "errors.safetensors", file.tensors, file.metadata);
  CHECK_FALSE(mpol::cli::kept_errors(scratch.path(), options, 72));
}

TEST_CASE("a run of all channels that replaces one in groups leaves none of their states", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  const Words options = {"--optimizer", "adam", "--epochs", "5"};
  const auto run = [&](const Words& more) { run_to_end(cube_run(data, scratch / "out", extended_by(options, more))); };
  run({"--channels-at-once", "1"});
  CHECK(names_in(scratch / "out" / "channels") == Words{"0001", "0002"});
  run({"--channels-at-once", "2", "--overwrite"});
  CHECK(names_in(scratch / "out" / "channels") == Words{"0002"});
  write_text(scratch / "out" / "channels" / "notes.txt", "mine");
  run({"--overwrite"});
  CHECK(names_in(scratch / "out" / "channels") == Words{"notes.txt"});
  fs::remove(scratch / "out" / "channels" / "notes.txt");
  run({"--channels-at-once", "1", "--overwrite"});
  run({"--overwrite"});
  CHECK_FALSE(fs::exists(scratch / "out" / "channels"));
}

TEST_CASE("a group that diverges ends the run, and is named", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const Words options = {"--optimizer", "sgd", "--learning-rate", "1e300", "--epochs", "20", "--channels-at-once", "1"};
  const auto run = run_mpol(cube_run(data, scratch / "out", options));
  CHECK(run.exit_code == 3);
  CHECK(run.error_names("channel 0 of 2: "));
  CHECK_FALSE(fs::exists(scratch / "out" / "image.fits"));
  const auto kept = run_mpol(cube_run(data, scratch / "kept", extended_by(options, {"--keep-diverged"})));
  CHECK(kept.exit_code == 3);
  CHECK(mpol::io::read_fits(scratch / "kept" / "image.fits").cube.size(0) == 2);
}

TEST_CASE("channels are not fitted apart where a fit joins them", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--tv-channel", "1e-4"}, "tv-channel joins channels"},
      {{"--optimizer", "lbfgs", "--epochs", "5"}, "lbfgs takes all channels together"},
      {{"--samples", "4", "--keep-samples"}, "--keep-samples needs the whole fit in one place"},
      {{"--samples", "4", "--tv-channel", "1e-4"}, "tv-channel joins channels"},
      {{"--tv", "cv"}, "a search of weights makes likelihoods of all channels"},
  };
  for (const auto& [options, why] : cases) {
    INFO(why);
    const auto run = run_mpol(cube_run(data, scratch / "out", extended_by(options, {"--channels-at-once", "1"})));
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.error_names("--channels-at-once"));
    CHECK(run.error_names(why));
  }
  // As many as there are is all of them.
  run_to_end(cube_run(data, scratch / "all", {"--tv-channel", "1e-4", "--epochs", "5", "--channels-at-once", "2"}));
}
