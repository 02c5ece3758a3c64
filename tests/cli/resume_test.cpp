#include "catch.h"

#include <algorithm>
#include <csignal>
#include <thread>

#include "observation.h"
#include "program.h"

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

TEST_CASE("a killed run resumes to what an uninterrupted run gives", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::vector<std::string> settings = {"--epochs", "1500", "--checkpoint-interval", "20"};
  Program program(short_run(data, scratch / "out", settings));
  REQUIRE(wait_for(scratch / "out" / "checkpoint.safetensors", program));
  program.send(SIGKILL);
  CHECK(program.wait().signal == SIGKILL);
  const auto resumed = run_mpol(short_run(data, scratch / "out", with(settings, {"--resume"})));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", settings)).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
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
