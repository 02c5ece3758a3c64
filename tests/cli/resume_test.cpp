#include "catch.h"

#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

#include <mpol_cpp/train/checkpoint.h>

#include "observation.h"
#include "program.h"

using mpol::read_checkpoint;
using namespace mpol::testing;

namespace {

/// Waits until a file is there; false when the program ended before.
bool wait_for(const std::filesystem::path& file, Program& program) {
  while (!std::filesystem::exists(file)) {
    if (!program.running()) return std::filesystem::exists(file);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Waits until the checkpoint is of more epochs; false when the program ended before.
bool wait_for_checkpoint_after(const std::filesystem::path& file, std::int64_t epochs, Program& program) {
  while (program.running()) {
    if (std::filesystem::exists(file) && read_checkpoint(file)->epochs > epochs) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void check_same_results(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const auto* name : {"image.fits", "residual.fits", "history.csv"}) {
    INFO(name);
    const bool same = read_text(a / name) == read_text(b / name);
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("SIGINT and SIGTERM end a run with its state, and --resume gives what an uninterrupted run gives", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto [signal, code] = GENERATE(table<int, int>({{SIGINT, 130}, {SIGTERM, 143}}));
  Program program(short_run(data, scratch / "out", {"--epochs", "1000000", "--checkpoint-interval", "20"}));
  REQUIRE(wait_for(scratch / "out" / "checkpoint.safetensors", program));
  program.send(signal);
  const auto ended = program.wait();
  INFO(ended.err);
  CHECK(ended.exit_code == code);
  const auto history = read_text(scratch / "out" / "history.csv");
  const auto epochs = std::count(history.begin(), history.end(), '\n') - 1;
  REQUIRE(epochs >= 20);
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / ".mpol.lock"));

  const auto all = std::to_string(epochs + 25);
  const auto resumed = run_mpol(short_run(data, scratch / "out", {"--epochs", all, "--resume"}));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", {"--epochs", all})).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
}

TEST_CASE("a run that is killed at random moments, twenty times, ends as one that never was", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto [optimizer, likelihood, dtype, kills] =
      GENERATE(table<std::string, std::string, std::string, int>({{"adam", "gridded", "float64", 20},
                                                                  {"lbfgs", "gridded", "float64", 5},
                                                                  {"adam", "exact", "float32", 7},
                                                                  {"adam", "exact", "float64", 3}}));
  const std::vector<std::string> manner = {"--optimizer", optimizer, "--likelihood", likelihood, "--dtype", dtype};
  const auto unending = with({"--epochs", "1000000", "--checkpoint-interval", "3"}, manner);
  const auto seed = std::random_device()();
  std::mt19937 random(seed);
  INFO("seed " << seed << ", " << optimizer << ", " << likelihood << ", " << dtype);
  std::uniform_int_distribution<int> microseconds(0, 60'000);
  const auto checkpoint = scratch / "out" / "checkpoint.safetensors";
  for (int i = 0; i < kills; ++i) {
    // From before the first checkpoint of the program's life to many later, while it reads, computes, writes or renames.
    const auto last = std::filesystem::exists(checkpoint) ? read_checkpoint(checkpoint)->epochs : 0;
    Program program(short_run(data, scratch / "out", with(unending, {"--resume"})));
    if (i % 4 != 0 && !wait_for_checkpoint_after(checkpoint, last, program)) {
      const auto ended = program.wait();
      FAIL("ended by itself, exit " << ended.exit_code << ", signal " << ended.signal << ": " << ended.err);
    }
    std::this_thread::sleep_for(std::chrono::microseconds((i % 4 == 0 ? 10 : 1) * microseconds(random)));
    program.send(SIGKILL);
    const auto ended = program.wait();
    INFO(ended.err);
    REQUIRE(ended.signal == SIGKILL);
    if (i % 4 != 0) REQUIRE(read_checkpoint(checkpoint)->epochs > last);
  }
  const auto all = std::to_string(read_checkpoint(checkpoint)->epochs + 7);
  const auto settings = with({"--epochs", all}, manner);
  const auto resumed = run_mpol(short_run(data, scratch / "out", with(settings, {"--resume"})));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", settings)).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
}

TEST_CASE("a full disk ends a run, and with room it goes on from its last good state", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  // The history grows by a row an epoch until the checkpoint is larger than a file may be.
  const std::vector<std::string> unending = {"--epochs", "1000000", "--checkpoint-interval", "50"};
  RunOptions small_disk;
  small_disk.largest_file_bytes = 120'000;
  const auto full = run_mpol(short_run(data, scratch / "out", unending), small_disk);
  INFO(full.err);
  CHECK(full.exit_code == 1);
  CHECK(full.error_lines().size() == 1);
  const auto checkpoint = scratch / "out" / "checkpoint.safetensors";
  const auto epochs = read_checkpoint(checkpoint)->epochs;
  CHECK(epochs >= 50);
  const std::vector<std::string> settings = {"--epochs", std::to_string(epochs + 5)};
  REQUIRE(run_mpol(short_run(data, scratch / "out", with(settings, {"--resume"}))).exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", settings)).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
}

TEST_CASE("--memory-limit refuses a fit before anything is read", "[cli]") {
  const Scratch scratch;
  const auto refused = run_mpol(short_run((scratch / "missing.npz").string(), scratch / "out", {"--memory-limit", "0.1"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_lines().size() == 1);
  CHECK(refused.error_names("--memory-limit"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  CHECK(run_mpol(short_run(data, scratch / "out", {"--memory-limit", "4"})).exit_code == 0);
}

TEST_CASE("--resume on a finished run touches nothing", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  const auto state = [&] {
    std::vector<std::string> files;
    for (const auto& name : names_in(scratch / "out")) {
      const auto time = std::filesystem::last_write_time(scratch / "out" / name).time_since_epoch().count();
      files.push_back(name + " " + std::to_string(time));
    }
    files.push_back(std::to_string(std::filesystem::last_write_time(scratch / "out").time_since_epoch().count()));
    return files;
  };
  const auto before = state();
  const auto again = run_mpol(short_run(data, scratch / "out", {"--resume"}));
  INFO(again.err);
  CHECK(again.exit_code == 0);
  CHECK(state() == before);
}

TEST_CASE("--resume takes more epochs and refuses other settings by name", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  const auto before = read_text(scratch / "out" / "image.fits");
  const auto other = small_observation(1, 700);
  const auto refuse = [&](const std::vector<std::string>& more, const std::string& named) {
    const auto run = run_mpol(short_run(data, scratch / "out", with({"--resume", "--epochs", "20"}, more)));
    INFO(named << "\n" << run.err);
    CHECK((run.exit_code == 1 || run.exit_code == 2));
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(named));
  };
  refuse({"--sparsity", "2e-4"}, "sparsity");
  refuse({"--learning-rate", "0.2"}, "learning-rate");
  refuse({"--npix", "34"}, "npix");
  refuse({"--dtype", "float32"}, "dtype");
  write_observation(data, other);
  refuse({}, "data");
  CHECK(read_text(scratch / "out" / "image.fits") == before);

  write_observation(data, small_observation());
  const auto more = run_mpol(short_run(data, scratch / "out", {"--resume", "--epochs", "20", "--checkpoint-interval", "3"}));
  INFO(more.err);
  CHECK(more.exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", {"--epochs", "20"})).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
}

TEST_CASE("checkpoints do not alter the trajectory", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "none", {"--epochs", "30"})).exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "each", {"--epochs", "30", "--checkpoint-interval", "1"})).exit_code == 0);
  check_same_results(scratch / "none", scratch / "each");
  CHECK(std::filesystem::exists(scratch / "each" / "checkpoint.previous.safetensors"));
}

TEST_CASE("two runs cannot write to one folder", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  Program first(short_run(data, scratch / "out", {"--epochs", "1000000", "--checkpoint-interval", "20"}));
  REQUIRE(wait_for(scratch / "out" / "checkpoint.safetensors", first));
  for (const auto* mode : {"--overwrite", "--resume"}) {
    const auto second = run_mpol(short_run(data, scratch / "out", {mode}));
    INFO(second.err);
    CHECK(second.exit_code == 1);
    CHECK(second.error_lines().size() == 1);
    CHECK(second.error_names("another mpol"));
  }
  CHECK(first.running());
  first.send(SIGTERM);
  CHECK(first.wait().exit_code == 143);
}

TEST_CASE("a second run needs --overwrite, which replaces only mpol's own files", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  write_text(scratch / "out" / "notes.txt", "mine");
  const auto before = read_text(scratch / "out" / "image.fits");
  const auto refused = run_mpol(short_run(data, scratch / "out", {"--sparsity", "1e-2"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_lines().size() == 1);
  CHECK(refused.error_names("--overwrite"));
  CHECK(read_text(scratch / "out" / "image.fits") == before);
  REQUIRE(run_mpol(short_run(data, scratch / "out", {"--sparsity", "1e-2", "--overwrite"})).exit_code == 0);
  CHECK(read_text(scratch / "out" / "image.fits") != before);
  CHECK(read_text(scratch / "out" / "notes.txt") == "mine");
}
