#include "catch.h"

#include <algorithm>

#include <unistd.h>

#include <mpol_cpp/cli/program/verb.h>

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

TEST_CASE("a fit that explodes within the finite numbers ends like one that leaves them", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::string dtype = GENERATE("float32", "float64"), likelihood = GENERATE("gridded", "exact");
  const std::string optimizer = GENERATE("sgd", "adam");
  CAPTURE(dtype, likelihood, optimizer);
  const auto run = run_mpol_here({"image", data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32",
                                  "--epochs", "50", "--optimizer", optimizer, "--learning-rate",
                                  optimizer == "sgd" ? "1e4" : "50", "--dtype", dtype, "--likelihood", likelihood});
  INFO(run.err);
  CHECK(run.exit_code == 3);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names("smaller learning rate"));
  CHECK(std::filesystem::exists(scratch / "out" / "checkpoint.safetensors"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "image.fits"));
}

TEST_CASE("a fit whose epochs end too early says so, one that converges does not", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto early =
      run_mpol_here(short_run(data, scratch / "early", {"--epochs", "30", "--learning-rate", "0.02", "--start", "base:-3"}));
  INFO(early.err);
  CHECK(early.exit_code == 0);
  REQUIRE(early.error_lines().size() == 1);
  CHECK(early.error_names("warning: the fit was still moving when its 30 epochs ended: over the last 3 the flux went from"));
  CHECK(early.error_names("--start dirty"));
  const auto converged = run_mpol_here(short_run(data, scratch / "converged", {"--epochs", "5000", "--stop-relative", "1e-3"}));
  INFO(converged.err);
  CHECK(converged.exit_code == 0);
  CHECK_FALSE(converged.error_names("still moving"));
  CHECK(run_mpol_here(short_run(data, scratch / "quiet", {"--epochs", "30", "--learning-rate", "0.02", "--quiet"})).err.empty());
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

TEST_CASE("a file by which a verb says that its results are known keeps other verbs away", "[cli][quick]") {
  CLI::App program("", "mpol");
#define MPOL_ADD_VERB(name) mpol::cli::add_##name(program),
  const std::vector<mpol::cli::Verb> verbs = {MPOL_VERBS(MPOL_ADD_VERB)};
#undef MPOL_ADD_VERB
  for (const auto& verb : verbs) {
    const auto name = verb.app->get_name();
    INFO(name);
    const bool writes_results = verb.app->help().find("Folder for the results") != std::string::npos;
    CHECK(verb.results.empty() == (!writes_results || name == "crossval"));  // whose results are those of an image
    const std::string other = name == "deproject" ? "polar" : "deproject";
    for (const auto& file : verb.results) {
      if (file.starts_with('.')) continue;  // the folder of an unfinished run
      const Scratch scratch;
      std::filesystem::create_directories(scratch / "out");
      write_text(scratch / "out" / file, "mine");
      const auto run = run_mpol_here({other, "image.fits", "-o", (scratch / "out").string(), "--overwrite"});
      INFO(run.err);
      CHECK(run.exit_code == 1);
      CHECK(run.error_names("holds results of `mpol " + name + "` (" + file + ")"));
      CHECK(read_text(scratch / "out" / file) == "mine");
    }
  }
}

TEST_CASE("a full disk is one line and leaves nothing under a final name", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::uint64_t limit = GENERATE(1000, 5000, 20000);
  const auto run = run_mpol(short_run(data, scratch / "out"), {.largest_file_bytes = limit});
  INFO(run.err);
  CHECK(run.exit_code == 1);
  const auto lines = run.error_lines();  // warnings of the checkpoint and the figures may come before
  CHECK(std::count_if(lines.begin(), lines.end(),
                      [](const auto& line) { return line.find(": warning: ") == std::string::npos; }) == 1);
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
