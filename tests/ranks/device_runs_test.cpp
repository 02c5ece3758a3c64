#include "catch.h"

#include <cmath>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/train/checkpoint.h>

#include "cli/observation.h"
#include "cli/program.h"
#include "ranks/run_checks.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

const Words two_devices = {"--device", "cpu,cpu", "--threads", "2"};

/// The same words and numbers, these to a tolerance.
void check_same_table(const std::filesystem::path& out, const std::filesystem::path& reference, double tolerance) {
  std::istringstream own(read_text(out)), wanted(read_text(reference));
  std::string own_cell, wanted_cell;
  const auto next = [](std::istringstream& text, std::string& cell) {
    cell.clear();
    for (char c = 0; text.get(c) && c != ',' && c != '\n';) cell += c;
    return static_cast<bool>(text);
  };
  while (next(wanted, wanted_cell)) {
    REQUIRE(next(own, own_cell));
    const auto number = mpol::number_of<double>(wanted_cell);
    if (number) CHECK(mpol::number_of<double>(own_cell).value_or(NAN) == Approx(*number).epsilon(tolerance));
    else CHECK(own_cell == wanted_cell);
  }
  CHECK_FALSE(next(own, own_cell));
}

}  // namespace

TEST_CASE("devices that share channels make the image of one", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  struct Case {
    const char* name;
    Words options;
    double tolerance;
  };
  const std::vector<Case> cases = {
      {"exact", {"--dtype", "float64"}, rounding_of_doubles},
      {"more devices than channels",
       {"--dtype", "float64", "--tsv", "1e-4", "--epochs", "300", "--device", "cpu,cpu,cpu,cpu"},
       rounding_of_doubles},
      {"gridded",
       {"--dtype", "float64", "--likelihood", "gridded", "--optimizer", "adam", "--epochs", "40"},
       rounding_of_doubles},
      {"loose", {"--dtype", "float64", "--likelihood", "loose", "--optimizer", "sgd", "--epochs", "20"}, rounding_of_doubles},
      {"no normalizer",
       {"--dtype", "float64", "--normalize", "none", "--optimizer", "adam", "--epochs", "20"},
       rounding_of_doubles},
      {"deterministic", {"--dtype", "float64", "--deterministic", "--epochs", "30"}, rounding_of_doubles},
      {"float32", {"--dtype", "float32", "--optimizer", "adam", "--epochs", "40"}, rounding_of_floats},
      {"joined",
       {"--dtype", "float64", "--tv-channel", "0.3U", "--group-sparsity", "0.1U", "--epochs", "60"},
       rounding_of_doubles},
      {"mask and start of the cube", with({"--dtype", "float64", "--epochs", "60"}, mask_and_start(scratch.path(), 3)),
       rounding_of_doubles},
  };
  for (const auto& [name, options, tolerance] : cases) {
    INFO(name);
    const auto one = scratch / fmt::format("one {}", name), many = scratch / fmt::format("many {}", name);
    const auto several = with(two_devices, options);
    const bool four = options.back() == "cpu,cpu,cpu,cpu";
    REQUIRE(run_mpol(small_run("image", data, one, with(options, {"--device", "cpu"}))).exit_code == 0);
    const auto run = run_mpol(small_run("image", data, many, several));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const auto* reason = std::string(name) == "joined" ? "tv-channel looks at those of the neighbors" : "no term joins channels";
    CHECK_THAT(run.out, ContainsSubstring(fmt::format("{} devices share channels ({}): {} of 3", four ? 4 : 2, reason,
                                                      four ? "cpu 1, cpu 1, cpu 1, cpu 0" : "cpu 2, cpu 1")));
    check_same(many, one, tolerance);
    const auto summary = summary_of(many);
    CHECK(summary["devices"] == json{{"count", four ? 4 : 2}, {"shard", "channels"}});
    CHECK(summary["device"] == (four ? "cpu,cpu,cpu,cpu" : "cpu,cpu"));
    CHECK_FALSE(summary_of(one).contains("devices"));
  }
}

TEST_CASE("devices share the channels of one group after another", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(5));
  const Words groups = {"--dtype", "float64", "--optimizer", "adam", "--epochs", "40", "--channels-at-once", "3"};
  REQUIRE(run_mpol(small_run("image", data, scratch / "one", with(groups, {"--device", "cpu"}))).exit_code == 0);
  const auto run = run_mpol(small_run("image", data, scratch / "many", with(groups, two_devices)));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("2 groups of at most 3 channels"));
  check_same(scratch / "many", scratch / "one", rounding_of_doubles);
}

TEST_CASE("devices sample the errors of what they share", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3, 601));
  for (const Words& more :
       {Words{"--samples", "5"}, Words{"--channels-at-once", "2"}, Words{"--likelihood", "loose", "--mode", "continuum"}}) {
    const auto one = scratch / ("one " + more[0]), many = scratch / ("many " + more[0]);
    const auto options = with({"--dtype", "float64"}, more);
    REQUIRE(run_mpol(small_run("image", data, one, options)).exit_code == 0);
    const auto run = run_mpol(small_run("image", data, many, with(two_devices, options)));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const bool of_channels = more.back() != "continuum";
    CHECK(summary_of(many)["devices"]["shard"] == (of_channels ? "channels" : "visibilities"));
    check_errors(many, one, of_channels ? std::nullopt : std::optional(1e-6));
  }
}

TEST_CASE("devices that share folds find the scan of one", "[cli][devices]") {
  const Scratch scratch;
  const auto* likelihood = GENERATE("exact", "gridded", "loose");
  const auto data = write_observation(scratch / "data.npz", small_observation());
  const Words options = {"--dtype", "float64", "--tv", "0.3U:3U:2",    "--sparsity",
                         "1U",      "--folds", "3",    "--likelihood", likelihood};
  REQUIRE(run_mpol(small_run("crossval", data, scratch / "one", options)).exit_code == 0);
  const auto run = run_mpol(small_run("crossval", data, scratch / "many", with(options, two_devices)));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("2 devices") && ContainsSubstring("all share the folds of the cross-validation"));
  check_same_table(scratch / "many" / "scan.csv", scratch / "one" / "scan.csv", rounding_of_doubles);
  check_same(scratch / "many", scratch / "one", rounding_of_doubles);
}

TEST_CASE("folds and channels of one cube are shared by the same devices", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const Words options = {"--dtype", "float64", "--tv", "0.3U:3U:2", "--sparsity", "1U", "--folds", "2"};
  REQUIRE(run_mpol(small_run("crossval", data, scratch / "one", options)).exit_code == 0);
  REQUIRE(run_mpol(small_run("crossval", data, scratch / "many", with(options, two_devices))).exit_code == 0);
  check_same(scratch / "many", scratch / "one", rounding_of_doubles);
}

TEST_CASE("what devices cannot share is done by the first", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const Words options = {"--dtype", "float64", "--optimizer", "adam", "--epochs", "20"};
  for (const Words& more : {Words{"--shard", "none"}, Words{"--tv-channel", "1e-4"}, Words{"--mode", "continuum"}}) {
    const auto one = scratch / ("one " + more[0] + more[1]), many = scratch / ("many " + more[0] + more[1]);
    // The first device has the threads that one alone would have: sums in another order differ by more than rounding after twenty
    // steps of adam, in the same order by nothing.
    REQUIRE(run_mpol(small_run("image", data, one, with(with(options, more), {"--threads", "2"}))).exit_code == 0);
    const auto run = run_mpol(small_run("image", data, many, with(with(options, two_devices), more)));
    REQUIRE(run.exit_code == 0);
    CHECK_THAT(run.out, ContainsSubstring("2 devices: cpu makes the fit"));
    check_same(many, one, 0);
  }
}

TEST_CASE("devices share the samples of a loose likelihood in each step", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "data.npz", small_observation(1, 601));
  const Words options = {"--dtype", "float64", "--likelihood", "loose"};
  for (const Words& more : {Words{"--optimizer", "adam", "--epochs", "20"}, Words{"--optimizer", "auto"},
                            Words{"--noise", "student", "--optimizer", "adam", "--epochs", "20"}}) {
    const auto one = scratch / ("one " + more[1]), many = scratch / ("many " + more[1]);
    REQUIRE(run_mpol(small_run("image", data, one, with(options, more))).exit_code == 0);
    const auto run = run_mpol(small_run("image", data, many, with(with(options, two_devices), more)));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK_THAT(run.out, ContainsSubstring("2 devices share visibilities in each step (the image has one channel): cpu 301, cpu "
                                          "300 of 601 samples a channel"));
    check_same(many, one, rounding_of_doubles);
    CHECK(summary_of(many)["devices"] == json{{"count", 2}, {"shard", "visibilities"}});
  }
}

TEST_CASE("any number of devices goes on where others ended", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  const auto run = [&](const char* out, const char* epochs, const char* devices) {
    return small_run("image", data, scratch / out,
                     {"--dtype", "float64", "--optimizer", "adam", "--epochs", epochs, "--device", devices});
  };
  REQUIRE(run_mpol(run("straight", "30", "cpu")).exit_code == 0);
  REQUIRE(run_mpol(run("parts", "10", "cpu,cpu")).exit_code == 0);
  const auto resumed = run_mpol(with(run("parts", "20", "cpu,cpu,cpu"), {"--resume"}));
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.error_names("the run began on cpu,cpu and goes on on cpu,cpu,cpu"));
  REQUIRE(run_mpol(with(run("parts", "30", "cpu"), {"--resume"})).exit_code == 0);
  check_same(scratch / "parts", scratch / "straight", rounding_of_doubles);
  // What was asked for is recorded, and is the same again.
  REQUIRE(run_mpol(run("list", "10", "cpu,cpu")).exit_code == 0);
  CHECK_THAT(read_text(scratch / "list" / "run.toml"), ContainsSubstring("device = \"cpu,cpu\""));
}

TEST_CASE("a signal ends the fits of all devices with one checkpoint", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const auto run =
      small_run("image", data, scratch / "out", with(two_devices, {"--optimizer", "adam", "--checkpoint-interval", "50"}));
  Program program(with(run, {"--epochs", "100000000"}));
  while (!std::filesystem::exists(scratch / "out" / "checkpoint.safetensors")) {
    REQUIRE(program.running());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  program.send(SIGINT);
  CHECK(program.wait().exit_code == 130);
  const auto kept = mpol::read_checkpoint(scratch / "out" / "checkpoint.safetensors")->epochs;
  CHECK(kept >= 50);
  CHECK(run_mpol(with(run, {"--resume", "--epochs", fmt::format("{}", kept + 20)})).exit_code == 0);
}

TEST_CASE("a list with a device that is none is one error", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const auto refused = [&](const Words& options, int code, const char* words) {
    const auto run = run_mpol(small_run("image", data, scratch / "out", options));
    INFO(run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
  };
  refused({"--device", "cpu,cuba:1"}, 2, "device 'cuba:1' of the list 'cpu,cuba:1' is none");
  refused({"--device", "cpu,"}, 2, "device '' of the list");
  refused({"--device", "cpu,auto"}, 2, "device auto of the list");
  refused({"--device", "cpu,cuda:77"}, 1, "device cuda:77 is not there");
  refused({"--device", "cpu,cpu", "--shard", "visibilities"}, 2,
          "a step of the exact likelihood does not go through the samples");
  refused({"--device", "cpu,cpu", "--shard", "channels", "--optimizer", "lbfgs", "--epochs", "5"}, 2,
          "lbfgs takes all channels together");
  CHECK(names_in(scratch / "out").empty());
}

TEST_CASE("all takes the one device that is there, and says so", "[cli][devices]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  RunOptions hidden;
  hidden.environment = {"CUDA_VISIBLE_DEVICES="};
  const auto run = run_mpol(small_run("image", data, scratch / "out", {"--device", "all", "--epochs", "5"}), hidden);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("on cpu (all: no GPU: "));
  CHECK(summary_of(scratch / "out")["device"] == "cpu");
}
