#include "catch.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include <mpol_cpp/ops/simd/isa.h>
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

std::vector<std::string> resumed_with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
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

/// Every file below a folder with its contents.
std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().lexically_relative(folder).string()] = read_text(entry.path());
  }
  return files;
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
  const auto unending = resumed_with({"--epochs", "1000000", "--checkpoint-interval", "3"}, manner);
  const auto seed = std::random_device()();
  std::mt19937 random(seed);
  INFO("seed " << seed << ", " << optimizer << ", " << likelihood << ", " << dtype);
  std::uniform_int_distribution<int> microseconds(0, 60'000);
  const auto checkpoint = scratch / "out" / "checkpoint.safetensors";
  for (int i = 0; i < kills; ++i) {
    // From before the first checkpoint of the program's life to many later, while it reads, computes, writes or renames.
    const auto last = std::filesystem::exists(checkpoint) ? read_checkpoint(checkpoint)->epochs : 0;
    Program program(short_run(data, scratch / "out", resumed_with(unending, {"--resume"})));
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
  const auto settings = resumed_with({"--epochs", all}, manner);
  const auto resumed = run_mpol(short_run(data, scratch / "out", resumed_with(settings, {"--resume"})));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", settings)).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
}

TEST_CASE("a disk too small for the results ends a run, and with room it goes on from its last good state", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out", {"--checkpoint-interval", "3"})).exit_code == 0);
  RunOptions small_disk;
  small_disk.largest_file_bytes = 5'000;  // a checkpoint has 25'000
  const std::vector<std::string> longer = {"--resume", "--epochs", "20", "--checkpoint-interval", "3"};
  const auto full = run_mpol(short_run(data, scratch / "out", longer), small_disk);
  INFO(full.err);
  CHECK(full.exit_code == 1);
  CHECK(full.error_names("warning: no checkpoint after 12 epochs"));
  CHECK(full.error_lines().size() == 3);  // the failures in a row are one warning; a fit cut short; the error
  CHECK(read_checkpoint(scratch / "out" / "checkpoint.safetensors")->epochs == 10);
  REQUIRE(run_mpol(short_run(data, scratch / "out", longer)).exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", {"--epochs", "20"})).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
}

TEST_CASE("a run that is interrupted without room for its checkpoint says from where it can go on", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  RunOptions small_disk;
  small_disk.largest_file_bytes = 5'000;
  Program program(short_run(data, scratch / "out", {"--epochs", "1000000", "--checkpoint-interval", "20"}), small_disk);
  REQUIRE(wait_for(scratch / "out" / ".mpol.lock", program));
  std::this_thread::sleep_for(std::chrono::milliseconds(800));  // it is computing, and lets no failed checkpoint disturb it
  REQUIRE(program.running());
  program.send(SIGTERM);
  const auto ended = program.wait();
  INFO(ended.err);
  CHECK(ended.exit_code == 1);
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "run.toml"));
}

TEST_CASE("a signal that was ignored at the start stays so; SIGHUP ends a run with its state", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto arguments = short_run(data, scratch / "out", {"--epochs", "1000000", "--checkpoint-interval", "20"});
  RunOptions background;
  background.ignored_signals = {SIGINT, SIGHUP};
  {
    Program program(arguments, background);
    REQUIRE(wait_for(scratch / "out" / "checkpoint.safetensors", program));
    for (int i = 0; i < 3; ++i) program.send(SIGINT), program.send(SIGHUP);
    REQUIRE(wait_for_checkpoint_after(scratch / "out" / "checkpoint.safetensors",
                                      read_checkpoint(scratch / "out" / "checkpoint.safetensors")->epochs, program));
    program.send(SIGTERM);
    CHECK(program.wait().exit_code == 143);
  }
  std::filesystem::remove_all(scratch / "out");
  Program program(arguments);
  REQUIRE(wait_for(scratch / "out" / "checkpoint.safetensors", program));
  program.send(SIGHUP);
  const auto ended = program.wait();
  INFO(ended.err);
  CHECK(ended.exit_code == 129);
  const auto history = read_text(scratch / "out" / "history.csv");
  const auto epochs = std::count(history.begin(), history.end(), '\n') - 1;
  CHECK(read_checkpoint(scratch / "out" / "checkpoint.safetensors")->epochs == epochs);
}

TEST_CASE("an --overwrite that is interrupted leaves the earlier results whole, and --resume goes on with it", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::vector<std::string> other = {"--tsv", "1e-3", "--split-channels"};
  REQUIRE(run_mpol(short_run(data, scratch / "out", resumed_with(other, {"--checkpoint-interval", "4"}))).exit_code == 0);
  const auto earlier = files_in(scratch / "out");
  CHECK(earlier.contains("image_0000.fits"));
  Program program(short_run(data, scratch / "out", {"--overwrite", "--epochs", "1000000", "--checkpoint-interval", "20"}));
  const auto unfinished = scratch / "out" / ".mpol.unfinished";
  REQUIRE(wait_for(unfinished / "checkpoint.safetensors", program));
  program.send(SIGINT);
  CHECK(program.wait().exit_code == 130);
  auto present = files_in(scratch / "out");
  std::erase_if(present, [](const auto& file) { return file.first.starts_with(".mpol.unfinished"); });
  CHECK(present == earlier);
  const auto epochs = read_checkpoint(unfinished / "checkpoint.safetensors")->epochs;
  const auto history = read_text(unfinished / "history.csv");
  CHECK(std::count(history.begin(), history.end(), '\n') == epochs + 1);

  // The earlier run is as finished as it was; to take that one further the new one must be given up.
  CHECK(run_mpol(short_run(data, scratch / "out", resumed_with(other, {"--resume"}))).exit_code == 0);
  const auto further = run_mpol(short_run(data, scratch / "out", resumed_with(other, {"--resume", "--epochs", "12"})));
  CHECK(further.exit_code == 1);
  CHECK(further.error_names(".mpol.unfinished"));

  const auto all = std::to_string(epochs + 5);
  const auto resumed = run_mpol(short_run(data, scratch / "out", {"--resume", "--epochs", all}));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", {"--epochs", all})).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
  const auto after = files_in(scratch / "out");
  for (const auto* name : {"image_0000.fits", "dirty_0000.fits", "residual_0000.fits"}) CHECK_FALSE(after.contains(name));
  CHECK_FALSE(std::filesystem::exists(unfinished));
}

TEST_CASE("files in figures/ that mpol did not write stay, whatever is done to OUT", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  std::filesystem::create_directories(scratch / "out" / "figures" / "paper");
  write_text(scratch / "out" / "figures" / "notes.txt", "mine");
  write_text(scratch / "out" / "figures" / "paper" / "fig1.pdf", "mine too");
  const std::vector<std::vector<std::string>> manners = {{"--resume", "--epochs", "12"}, {"--overwrite", "--tsv", "1e-3"}};
  for (const auto& manner : manners) {
    REQUIRE(run_mpol(short_run(data, scratch / "out", manner)).exit_code == 0);
    CHECK(read_text(scratch / "out" / "figures" / "notes.txt") == "mine");
    CHECK(read_text(scratch / "out" / "figures" / "paper" / "fig1.pdf") == "mine too");
  }
  // What is in the way of a result is not touched either, and nor are the results that are there.
  std::filesystem::rename(scratch / "out" / "image.fits", scratch / "image.fits");
  std::filesystem::create_directories(scratch / "out" / "image.fits");
  const auto before = files_in(scratch / "out");
  const auto refused = run_mpol(short_run(data, scratch / "out", {"--overwrite"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_names("image.fits"));
  auto after = files_in(scratch / "out");
  std::erase_if(after, [](const auto& file) { return file.first.starts_with(".mpol.unfinished"); });
  CHECK(after == before);
}

TEST_CASE("--resume makes again what was removed from a finished run", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  const auto before = read_text(scratch / "out" / "image.fits");
  for (const auto* name : {"image.fits", "dirty.fits", "summary.png", "summary.json"}) {
    INFO(name);
    std::filesystem::remove(scratch / "out" / name);
    REQUIRE(run_mpol(short_run(data, scratch / "out", {"--resume"})).exit_code == 0);
    CHECK(std::filesystem::exists(scratch / "out" / name));
  }
  CHECK(read_text(scratch / "out" / "image.fits") == before);
}

TEST_CASE("--resume without a checkpoint starts anew and says so, or refuses a folder with other things", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  std::filesystem::create_directories(scratch / "out" / "diagnostics");
  write_text(scratch / "out" / "diagnostics" / "epoch_000003.png", "of a run that was killed before its first checkpoint");
  write_text(scratch / "out" / ".checkpoint.safetensors.1-0.tmp", "half a checkpoint");
  const auto begun = run_mpol(short_run(data, scratch / "out", {"--resume"}));
  INFO(begun.err);
  CHECK(begun.exit_code == 0);
  CHECK(begun.error_names("nothing to resume"));
  CHECK(begun.error_lines().size() == 1);
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / ".checkpoint.safetensors.1-0.tmp"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / "diagnostics"));
  CHECK(run_mpol(short_run(data, scratch / "quiet", {"--resume", "--quiet"})).err.empty());

  std::filesystem::create_directories(scratch / "mine");
  write_text(scratch / "mine" / "notes.txt", "mine");
  const auto refused = run_mpol(short_run(data, scratch / "mine", {"--resume"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_names("no checkpoint to resume from"));
}

TEST_CASE("--resume without DATA goes on with the settings of the run in OUT", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::vector<std::string> settings = {"--tsv", "1e-3", "--start", "flat:0.2", "--checkpoint-interval", "5"};
  const auto resume = [&](const std::vector<std::string>& more) {
    return run_mpol(resumed_with({"image", "-o", (scratch / "out").string(), "--resume"}, more));
  };
  {
    Program program(short_run(data, scratch / "out", resumed_with(settings, {"--epochs", "1000000"})));
    REQUIRE(wait_for(scratch / "out" / "checkpoint.safetensors", program));
    program.send(SIGKILL);  // before any run.toml
    program.wait();
  }
  REQUIRE_FALSE(std::filesystem::exists(scratch / "out" / "run.toml"));
  const auto all = std::to_string(read_checkpoint(scratch / "out" / "checkpoint.safetensors")->epochs + 6);
  const auto other = resume({"--epochs", all, "--tsv", "2e-3"});  // the command line beats what is recorded
  CHECK(other.exit_code == 1);
  CHECK(other.error_names("tsv"));
  const auto resumed = resume({"--epochs", all});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(run_mpol(short_run(data, scratch / "straight", resumed_with(settings, {"--epochs", all}))).exit_code == 0);
  check_same_results(scratch / "out", scratch / "straight");
  CHECK(resume({}).exit_code == 0);  // finished

  const auto nothing = run_mpol({"image", "-o", (scratch / "nothing").string(), "--resume"});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.error_names("DATA"));
}

TEST_CASE("a run goes on with its number of threads, and on another instruction set with a warning", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out", {"--threads", "3"})).exit_code == 0);
  const RunOptions portable{.environment = {"MPOL_ISA=portable"}};
  const auto asked = run_mpol(short_run(data, scratch / "out", {"--resume", "--epochs", "12", "--threads", "1"}));
  CHECK(asked.exit_code == 1);
  CHECK(asked.error_names("threads is 3 there and 1 here"));
  const auto resumed = run_mpol(short_run(data, scratch / "out", {"--resume", "--epochs", "12"}));
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(read_text(scratch / "out" / "run.toml").find("threads = 3") != std::string::npos);
  CHECK_FALSE(resumed.error_names("bit for bit"));
  const auto other = run_mpol(short_run(data, scratch / "out", {"--resume", "--epochs", "14"}), portable);
  INFO(other.err);
  CHECK(other.exit_code == 0);
  const bool changed = mpol::selected_isa() != mpol::Isa::portable;
  CHECK(other.error_names("goes on on the instruction set portable") == changed);
  CHECK(other.error_names("no longer the same bit for bit") == changed);
}

TEST_CASE("a resumed run says that its device is another, also when it was killed", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  const auto path = scratch / "out" / "checkpoint.safetensors";
  auto checkpoint = *read_checkpoint(path);
  CHECK(checkpoint.notes.at("device") == "cpu");
  checkpoint.notes["device"] = "cuda:0";  // as a run on a GPU leaves it
  mpol::write_checkpoint(path, checkpoint);
  std::filesystem::remove(scratch / "out" / "run.toml");  // and one that was killed
  const auto resumed = run_mpol(short_run(data, scratch / "out", {"--resume", "--epochs", "12", "--device", "cpu"}));
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.error_names("the run began on cuda:0 and goes on on cpu"));
}

TEST_CASE("where the file system knows no locks a run warns and goes on", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const RunOptions no_locks{.environment = {std::string("LD_PRELOAD=") + MPOL_FAULT_INJECTION, "MPOL_FAULT_LOCK=1"}};
  const auto run = run_mpol(short_run(data, scratch / "out"), no_locks);
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(run.error_names("cannot be locked (No locks available)"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out" / ".mpol.lock"));
}

TEST_CASE("the results of another verb are not overwritten: part of them would stay beside a new summary", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol(short_run(data, scratch / "out")).exit_code == 0);
  const auto before = files_in(scratch / "out");
  const std::vector<std::string> dirty = {"dirty", data, "--cell-size", "0.1", "--npix", "32", "--overwrite", "-o"};
  const auto refused = run_mpol(resumed_with(dirty, {(scratch / "out").string()}));
  INFO(refused.err);
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_names("results of `mpol image`"));
  CHECK(files_in(scratch / "out") == before);
  for (int i = 0; i < 2; ++i) CHECK(run_mpol(resumed_with(dirty, {(scratch / "dirty").string()})).exit_code == 0);
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
    const auto run = run_mpol(short_run(data, scratch / "out", resumed_with({"--resume", "--epochs", "20"}, more)));
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
