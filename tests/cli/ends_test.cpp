#include "catch.h"

#include <unistd.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;

namespace {

/// A learning rate that leaves the finite numbers at once.
const std::vector<std::string> diverging = {"--optimizer", "sgd", "--learning-rate", "1e300", "--dtype", "float64"};

std::vector<std::string> diverging_with(const std::vector<std::string>& more) {
  auto arguments = diverging;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("a fit that diverges keeps its checkpoint and writes no image", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol(short_run(data, scratch / "out", diverging));
  INFO(run.err);
  CHECK(run.exit_code == 3);
  CHECK(run.error_lines().size() == 1);
  CHECK(std::filesystem::exists(scratch / "out" / "checkpoint.safetensors"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "summary.json"));
}

TEST_CASE("--keep-diverged writes the last good image", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol(short_run(data, scratch / "out", diverging_with({"--keep-diverged"})));
  INFO(run.err);
  CHECK(run.exit_code == 3);
  CHECK(std::filesystem::exists(scratch / "out" / "image.fits"));
  CHECK(read_text(scratch / "out" / "summary.json").find("\"stop_reason\": \"diverged\"") != std::string::npos);
}

TEST_CASE("a failed --overwrite leaves the earlier results", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  const auto image = read_text(scratch / "out" / "image.fits"), summary = read_text(scratch / "out" / "summary.json");
  CHECK(run_mpol(short_run(data, scratch / "out", diverging_with({"--overwrite"}))).exit_code == 3);
  CHECK(run_mpol(short_run(data + "x", scratch / "out", {"--overwrite"})).exit_code == 1);
  CHECK(read_text(scratch / "out" / "image.fits") == image);
  CHECK(read_text(scratch / "out" / "summary.json") == summary);
}

TEST_CASE("a full disk is one line and leaves nothing under a final name", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::uint64_t limit = GENERATE(1000, 5000, 20000);
  const auto run = run_mpol(short_run(data, scratch / "out"), {.largest_file_bytes = limit});
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(run.error_lines().size() == 1);
  for (const auto* name : {"image.fits", "dirty.fits", "summary.json", "run.toml", "image.png"}) {
    CHECK_FALSE(std::filesystem::exists(scratch / "out" / name));
  }
}

TEST_CASE("a folder that cannot hold the results is one line", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  write_text(scratch / "file", "mine");
  std::filesystem::create_directories(scratch / "full");
  write_text(scratch / "full" / "notes.txt", "mine");
  std::filesystem::create_directories(scratch / "locked");
  std::filesystem::permissions(scratch / "locked", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  std::vector<std::filesystem::path> folders = {scratch / "file", scratch / "file" / "below", scratch / "full",
                                                "/proc/mpol-cannot-write-here"};
  if (::geteuid() != 0) folders.push_back(scratch / "locked");  // nothing is locked to root
  for (const auto& folder : folders) {
    const auto run = run_mpol(short_run(data, folder));
    INFO(folder << "\n" << run.err);
    CHECK(run.exit_code == 1);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(folder.string()));
  }
  CHECK(names_in(scratch / "full") == std::vector<std::string>{"notes.txt"});
  std::filesystem::permissions(scratch / "locked", std::filesystem::perms::owner_all);
}
