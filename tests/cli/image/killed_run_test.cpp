#include "catch.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;

namespace {

namespace fs = std::filesystem;

/// Kills are spread over the calls of a run, from a random one on; all of them where MPOL_TEST_EVERY_CALL is set.
constexpr long calls_tried = 8;
bool every_call() { return std::getenv("MPOL_TEST_EVERY_CALL") != nullptr; }

using Contents = std::map<std::string, std::string>;

/// Every file below a folder, hidden ones too.
Contents contents_of(const fs::path& folder) {
  Contents files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto name = entry.path().lexically_relative(folder).string();
    files[name] = entry.is_directory() ? std::string("a folder") : read_text(entry.path());
  }
  return files;
}

/// Names that only a run in progress may have.
std::vector<std::string> leftovers_in(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& [name, text] : contents_of(folder)) {
    const auto last = fs::path(name).filename().string();
    if (last.starts_with('.') || last.ends_with(".link")) found.push_back(name);
  }
  return found;
}

const Contents of_the_user = {{"notes.txt", "mine"},
                              {"figures/notes.txt", "mine too"},
                              {"figures/paper/fig1.pdf", "not a figure of mpol"},
                              {"diagnostics/notes.txt", "and mine"},
                              {"diagnostics/epoch_old.png", "kept by hand"},
                              {".mine.12-3.tmp", "looks like a temporary"}};

void add_files_of_the_user(const fs::path& out) {
  for (const auto& [name, text] : of_the_user) {
    fs::create_directories((out / name).parent_path());
    write_text(out / name, text);
  }
}

/// A run whose every call that alters OUT may be its last.
struct Scenario {
  std::string name;
  std::vector<std::string> manner;                   ///< of the run
  std::vector<std::string> mode;                     ///< --overwrite, --resume or nothing
  std::function<void(const fs::path& out)> earlier;  ///< what is in OUT before; empty: OUT is not there
  bool replaces = false;                             ///< the earlier results are another run's
};

class Trial {
 public:
  Trial(const Scratch& scratch, std::string data, const Scenario& scenario)
      : scratch_(scratch), data_(std::move(data)), scenario_(scenario) {
    require_success(run(scratch_ / "straight", {}));
    if (scenario_.earlier) {
      scenario_.earlier(scratch_ / "earlier");
      add_files_of_the_user(scratch_ / "earlier");
    }
    earlier_ = contents_of(scratch_ / "earlier");
    begin();
    require_success(run(out_, scenario_.mode, {"MPOL_FAULT_COUNT=" + (scratch_ / "count").string()}));
    check_end();
    calls_ = std::stol(read_text(scratch_ / "count"));
  }

  long calls() const { return calls_; }

  void kill_at(long call) {
    INFO(scenario_.name << ": killed at call " << call << " of " << calls_);
    begin();
    const auto killed = run(out_, scenario_.mode, fault(call, "kill"));
    INFO(killed.err);
    REQUIRE(killed.signal == SIGKILL);
    check_claims();
    go_on();
  }

  /// The disk fails at a call: the program ends in words, or goes on where the results do not depend on that call.
  void fail_at(long call, const std::string& action) {
    INFO(scenario_.name << ": " << action << " at call " << call << " of " << calls_);
    begin();
    const auto failed = run(out_, scenario_.mode, fault(call, action));
    INFO(failed.err);
    CHECK((failed.exit_code == 0 || failed.exit_code == 1));
    const auto lines = failed.error_lines();
    const auto errors = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("mpol image: ") && line.find("warning: ") == std::string::npos &&
             line.find("starts anew") == std::string::npos;
    });
    CHECK(errors == (failed.exit_code == 0 ? 0 : 1));
    check_claims();
    go_on();
  }

 private:
  static void require_success(const Outcome& outcome) {
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  }

  Outcome run(const fs::path& out, const std::vector<std::string>& mode, std::vector<std::string> environment = {}) const {
    auto arguments = short_run(data_, out, scenario_.manner);
    arguments.insert(arguments.end(), mode.begin(), mode.end());
    if (!environment.empty()) {
      environment.push_back(std::string("LD_PRELOAD=") + MPOL_FAULT_INJECTION);
      environment.push_back("MPOL_FAULT_FOLDER=" + out.string());
    }
    environment.emplace_back("PATH=/nowhere");  // no gnuplot, which would take its time
    return run_mpol(arguments, {.environment = environment});
  }

  static std::vector<std::string> fault(long call, const std::string& action) {
    return {"MPOL_FAULT_AT=" + std::to_string(call), "MPOL_FAULT_ACTION=" + action};
  }

  void begin() const {
    fs::remove_all(out_);
    if (!earlier_.empty()) fs::copy(scratch_ / "earlier", out_, fs::copy_options::recursive);
  }

  bool is_earlier(const std::string& name) const {
    const auto found = earlier_.find(name);
    return found != earlier_.end() && fs::exists(out_ / name) && read_text(out_ / name) == found->second;
  }

  /// Where there is a run.toml, every result is of the run that it tells of.
  void check_claims() const {
    if (!fs::exists(out_ / "run.toml")) return;
    const bool earlier = is_earlier("run.toml");
    for (const auto* name :
         {"image.fits", "dirty.fits", "residual.fits", "history.csv", "figures/image.gp", "figures/summary.gp"}) {
      INFO(name);
      CHECK((earlier ? is_earlier(name) : read_text(out_ / name) == read_text(scratch_ / "straight" / name)));
    }
    CHECK((!earlier || is_earlier("summary.json")));
    if (!earlier || !scenario_.replaces) return;
    CHECK(is_earlier("checkpoint.safetensors"));
    CHECK(is_earlier("checkpoint.previous.safetensors"));
  }

  void go_on() {
    const bool untouched =
        scenario_.replaces && is_earlier("run.toml") && !fs::exists(out_ / ".mpol.unfinished" / "checkpoint.safetensors");
    const auto resumed = run(out_, {"--resume"});
    INFO(resumed.err);
    if (resumed.exit_code != 0) {
      // Only where nothing of the new run was there yet: the earlier one is not to be continued with other settings.
      REQUIRE(untouched);
      CHECK(resumed.error_names("is of another run"));
      require_success(run(out_, scenario_.mode));
    }
    check_end();
  }

  void check_end() const {
    for (const auto* name :
         {"image.fits", "dirty.fits", "residual.fits", "history.csv", "figures/image.gp", "figures/summary.gp"}) {
      INFO(name);
      const bool same = read_text(out_ / name) == read_text(scratch_ / "straight" / name);
      CHECK(same);
    }
    CHECK(fs::exists(out_ / "run.toml"));
    CHECK(fs::exists(out_ / "summary.json"));
    if (scenario_.earlier) {
      for (const auto& [name, text] : of_the_user) {
        INFO(name);
        CHECK(read_text(out_ / name) == text);
      }
    }
    const auto expected = scenario_.earlier ? std::vector<std::string>{".mine.12-3.tmp"} : std::vector<std::string>{};
    CHECK(leftovers_in(out_) == expected);
  }

  const Scratch& scratch_;
  std::string data_;
  const Scenario& scenario_;
  fs::path out_ = scratch_ / "out";
  Contents earlier_;
  long calls_ = 0;
};

/// A run with checkpoints and diagnostics in a new folder; one that replaces the results of another run; one that takes a
/// finished run further.
std::vector<Scenario> scenarios(const std::string& data) {
  const std::vector<std::string> manner = {"--epochs", "6", "--checkpoint-interval", "2"};
  const auto shown = [&](std::vector<std::string> more) {
    more.insert(more.begin(), manner.begin(), manner.end());
    return more;
  };
  const auto earlier = [data](const std::vector<std::string>& settings) {
    return [data, settings](const fs::path& out) {
      const auto run = run_mpol(short_run(data, out, settings), {.environment = {"PATH=/nowhere"}});
      INFO(run.err);
      REQUIRE(run.exit_code == 0);
    };
  };
  return {{"new", shown({"--diagnostics-interval", "3"}), {}, {}, false},
          {"overwrite",
           manner,
           {"--overwrite"},
           earlier({"--epochs", "4", "--checkpoint-interval", "1", "--tsv", "1e-3", "--diagnostics-interval", "2"}),
           true},
          {"more epochs", manner, {"--resume"}, earlier({"--epochs", "3", "--checkpoint-interval", "1"}), false}};
}

void at_calls(long calls, const std::function<void(long)>& action) {
  const long step = every_call() ? 1 : std::max(1L, calls / calls_tried);
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  for (long call = 1 + static_cast<long>(seed) % step; call <= calls; call += step) action(call);
}

}  // namespace

TEST_CASE("a run that is killed at any call that alters OUT lies of nothing, and ends as one that never was", "[cli][killed]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto all = scenarios(data);
  const auto& scenario = all[GENERATE(0UL, 1UL, 2UL)];
  Trial trial(scratch, data, scenario);
  REQUIRE(trial.calls() > 60);
  at_calls(trial.calls(), [&](long call) { trial.kill_at(call); });
  WARN(scenario.name << ": " << trial.calls() << " calls");
}

TEST_CASE("a disk that fails at any call ends a run in words or not at all, and it can go on", "[cli][killed]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto all = scenarios(data);
  const auto& scenario = all[GENERATE(0UL, 1UL)];
  const auto* action = GENERATE("full", "once");
  Trial trial(scratch, data, scenario);
  at_calls(trial.calls(), [&](long call) { trial.fail_at(call, action); });
}
