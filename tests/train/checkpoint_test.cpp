#include "catch.h"

#include <csignal>
#include <fstream>
#include <optional>

#include <sys/resource.h>

#include <torch/optim/rmsprop.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/trainer.h>

#include "problems.h"
#include "python.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Outcome {
  TrainResult result;
  Tensor base;
};

/// A run of a few epochs, some of which may be done already.
struct Plan {
  SmallProblem problem;
  TrainOptions options;
  StepKind step = StepKind::eager;

  /// A random term, so that the generator's state matters.
  static Term noisy() {
    return {"noisy", 1e-4, [](const ModelOutput& out) { return (out.sky * at::rand_like(out.sky)).sum({-3, -2, -1}); }};
  }
  Outcome run(TrainOptions with) const {
    auto model = problem.model();
    const auto objective = problem.objective(step == StepKind::eager ? std::vector{noisy()} : std::vector<Term>{});
    auto result = Trainer(model, objective, std::move(with)).fit();
    CHECK(result.step == step);
    return {std::move(result), model->base().detach().clone()};
  }
  Outcome uninterrupted() const { return run(options); }
  Outcome stopped_after(std::int64_t epochs, const std::filesystem::path& checkpoint) const {
    return run(TrainOptions(options).checkpoint(checkpoint).interrupted([=, done = std::int64_t{0}]() mutable {
      return ++done == epochs;
    }));
  }
  Outcome resumed(const std::filesystem::path& checkpoint) const {
    return run(TrainOptions(options).checkpoint(checkpoint).resume(true));
  }
};

Plan plan_for(OptimizerKind optimizer) {
  auto options = TrainOptions().optimizer(optimizer).epochs(12).schedule(LearningRateSchedule::exponential(0.95)).seed(5);
  if (optimizer == OptimizerKind::sgd) options.momentum(0.8);
  if (optimizer == OptimizerKind::adam) options.betas({0.8, 0.99});
  if (optimizer == OptimizerKind::own) {
    options.optimizer({"rmsprop", [](std::vector<Tensor> parameters) {
                         return std::make_unique<torch::optim::RMSprop>(std::move(parameters),
                                                                        torch::optim::RMSpropOptions(0.1).momentum(0.5));
                       }});
  }
  if (optimizer == OptimizerKind::lbfgs) options.epochs(5);  // each with up to 20 iterations
  return {{}, options};
}

void flip_bit(const std::filesystem::path& path, std::streamoff byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(byte);
  const char value = static_cast<char>(file.get() ^ 4);
  file.seekp(byte);
  file.put(value);
}

/// No file may be larger in its scope.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit small = before_;
    small.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

/// Collects warnings in its scope.
class Warnings {
 public:
  Warnings() : previous_(set_log_sink([this](LogLevel, std::string_view text) { text_ += text; })) {}
  ~Warnings() { set_log_sink(previous_); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  LogSink previous_;
};

}  // namespace

TEST_CASE("a run stopped at any epoch and resumed equals one that was not, bit for bit", "[train]") {
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lbfgs, OptimizerKind::own);
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  INFO(to_string(optimizer));
  auto plan = plan_for(optimizer);
  plan.problem.dtype = dtype;
  if (optimizer == OptimizerKind::own && dtype == torch::kFloat64) plan.step = StepKind::fused;
  const auto whole = plan.uninterrupted();
  for (std::int64_t epochs = 1; epochs <= plan.options.epochs(); ++epochs) {
    INFO("stopped after " << epochs);
    const TemporaryFolder folder;
    const auto path = folder / "checkpoint.safetensors";
    CHECK(plan.stopped_after(epochs, path).result.stop_reason == StopReason::interrupted);
    const auto resumed = plan.resumed(path);
    CHECK(resumed.result.resumed_from == epochs);
    CHECK(resumed.result.stop_reason == StopReason::epochs);
    CHECK(same_history(resumed.result.history, whole.result.history));
    CHECK(resumed.result.loss.values == whole.result.loss.values);
    CHECK(at::equal(resumed.base, whole.base));
  }
}

TEST_CASE("a resumed run has the anchors of the exact likelihood, bit for bit", "[train]") {
  const auto [optimizer, dtype, step] = GENERATE(std::tuple(OptimizerKind::adam, torch::kFloat32, StepKind::fused),
                                                 std::tuple(OptimizerKind::adam, torch::kFloat32, StepKind::eager),
                                                 std::tuple(OptimizerKind::lbfgs, torch::kFloat32, StepKind::fused),
                                                 std::tuple(OptimizerKind::adam, torch::kFloat64, StepKind::fused));
  auto plan = plan_for(optimizer);
  plan.problem.dtype = dtype, plan.problem.likelihood = "exact", plan.step = step;
  CAPTURE(to_string(optimizer), dtype, to_string(step));
  const auto whole = plan.uninterrupted();
  for (const std::int64_t epochs : {1, 4}) {
    const TemporaryFolder folder;
    const auto path = folder / "checkpoint.safetensors";
    plan.stopped_after(epochs, path);
    const auto resumed = plan.resumed(path);
    CHECK(resumed.result.resumed_from == epochs);
    CHECK(same_history(resumed.result.history, whole.result.history));
    CHECK(resumed.result.loss.values == whole.result.loss.values);
    CHECK(at::equal(resumed.base, whole.base));
  }
}

TEST_CASE("a resumed run converges at the epoch where the whole one does", "[train]") {
  auto plan = plan_for(OptimizerKind::adam);
  plan.problem.dtype = torch::kFloat64;
  plan.options.epochs(2000).stop_relative(1e-3).stop_window(6);
  const auto whole = plan.uninterrupted();
  REQUIRE(whole.result.stop_reason == StopReason::converged);
  REQUIRE(whole.result.epochs > 3);
  for (const auto epochs : {whole.result.epochs - 3, whole.result.epochs - 1}) {
    const TemporaryFolder folder;
    const auto path = folder / "checkpoint.safetensors";
    plan.stopped_after(epochs, path);
    const auto resumed = plan.resumed(path);
    CHECK(resumed.result.stop_reason == StopReason::converged);
    CHECK(resumed.result.epochs == whole.result.epochs);
    CHECK(at::equal(resumed.base, whole.base));
  }
}

TEST_CASE("saving checkpoints does not alter the run, and none is left half written", "[train]") {
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::lbfgs);
  const auto plan = plan_for(optimizer);
  const auto without = plan.uninterrupted();
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const auto with = plan.run(TrainOptions(plan.options).checkpoint(path).checkpoint_interval(1));
  CHECK(same_history(with.result.history, without.result.history));
  CHECK(at::equal(with.base, without.base));
  CHECK(folder.count() == 2);
  CHECK(read_checkpoint(path)->epochs == with.result.epochs);
  CHECK(read_checkpoint(folder / "checkpoint.previous.safetensors")->epochs == with.result.epochs - 1);
}

TEST_CASE("a finished run that is resumed does nothing; more epochs go on from it", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const auto first = plan.run(TrainOptions(plan.options).checkpoint(path));
  const auto written = std::filesystem::last_write_time(path);
  const auto again = plan.resumed(path);
  CHECK(again.result.resumed_from == 12);
  CHECK(again.result.loss.values == first.result.loss.values);
  CHECK(std::filesystem::last_write_time(path) == written);

  const auto longer = plan.run(TrainOptions(plan.options).checkpoint(path).resume(true).epochs(20));
  const auto whole = plan.run(TrainOptions(plan.options).epochs(20));
  CHECK(same_history(longer.result.history, whole.result.history));
  CHECK(at::equal(longer.base, whole.base));
  CHECK_THROWS_WITH(plan.resumed(path), ContainsSubstring("20 epochs done"));
}

TEST_CASE("resuming without a checkpoint starts the run", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto outcome = plan.resumed(folder / "checkpoint.safetensors");
  CHECK(outcome.result.resumed_from == 0);
  CHECK(at::equal(outcome.base, plan.uninterrupted().base));
}

TEST_CASE("a damaged checkpoint falls back to the one before, with a warning, and reaches the same end", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const auto whole = plan.uninterrupted();
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  plan.run(TrainOptions(plan.options).epochs(8).checkpoint(path).checkpoint_interval(4));
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  const auto damage = GENERATE(0, 1, 2, 3, 4);
  if (damage == 0) std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size / 2));
  if (damage == 1) flip_bit(path, size - 100);
  if (damage == 2) std::filesystem::remove(path);
  if (damage == 3) std::ofstream(path) << "not a checkpoint";
  if (damage == 4) write_safetensors(path, {{"x", torch::ones({2})}});
  const Warnings warnings;
  const auto resumed = plan.resumed(path);
  CHECK_THAT(warnings.text(), ContainsSubstring(path.string()) && ContainsSubstring("after 4 epochs"));
  CHECK(resumed.result.resumed_from == 4);
  CHECK(same_history(resumed.result.history, whole.result.history));
  CHECK(at::equal(resumed.base, whole.base));
  CHECK(read_checkpoint(path)->epochs == 12);
  CHECK(read_checkpoint(previous_checkpoint(path))->epochs == 4);
}

TEST_CASE("when both checkpoints are damaged the error names both", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  plan.run(TrainOptions(plan.options).checkpoint(path).checkpoint_interval(4));
  std::ofstream(path) << "x";
  std::ofstream(previous_checkpoint(path)) << "y";
  CHECK_THROWS_AS(plan.resumed(path), FileError);
  CHECK_THROWS_WITH(plan.resumed(path),
                    ContainsSubstring("checkpoint.safetensors") && ContainsSubstring("checkpoint.previous.safetensors"));
}

TEST_CASE("a checkpoint of another run is refused with the setting and both values", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const auto base_options = TrainOptions(plan.options).fingerprint({"input_sha256 = abc", "cell = 0.05"});
  plan.run(TrainOptions(base_options).epochs(3).checkpoint(path));
  const auto check = [&](TrainOptions options, const std::string& setting, const std::string& there, const std::string& here) {
    INFO(setting);
    const auto attempt = [&] { plan.run(options.checkpoint(path).resume(true)); };
    CHECK_THROWS_AS(attempt(), FileError);
    CHECK_THROWS_WITH(attempt(), ContainsSubstring(setting) && ContainsSubstring(there) && ContainsSubstring(here));
  };
  check(TrainOptions(base_options).learning_rate(0.25), "learning_rate", "0.3", "0.25");
  check(TrainOptions(base_options).optimizer(OptimizerKind::sgd), "optimizer", "adam", "sgd");
  check(TrainOptions(base_options).schedule({}), "schedule", "exponential(0.95)", "constant");
  check(TrainOptions(base_options).seed(6), "seed", "5", "6");
  check(TrainOptions(base_options).stop_relative(1e-5), "stop_relative", "0", "1e-05");
  check(TrainOptions(base_options).dtype(torch::kFloat32), "bcube.base_cube", "float64", "float32");
  check(TrainOptions(base_options).fingerprint({"input_sha256 = abd", "cell = 0.05"}), "input_sha256", "abc", "abd");
  check(TrainOptions(base_options).fingerprint({"input_sha256 = abc"}), "cell", "0.05", "not set");

  SmallProblem larger;
  larger.coords = GridCoords(0.05, 14);
  const auto resume = TrainOptions(base_options).checkpoint(path).resume(true);
  CHECK_THROWS_WITH(Trainer(larger.model(), larger.objective(), resume).fit(), ContainsSubstring("another run"));
  const auto strong = Objective(GriddedLikelihood(random_dataset(plan.problem.coords, 2, 7)), {terms::sparsity(1.0)});
  CHECK_THROWS_WITH(Trainer(plan.problem.model(), strong, resume).fit(), ContainsSubstring("sparsity"));
  CHECK_THROWS_AS(plan.run(TrainOptions(base_options).fingerprint({"no separator"}).checkpoint(path)), ValueError);

  // What may change: epochs, the interval, callbacks.
  CHECK(plan.run(TrainOptions(base_options).epochs(5).checkpoint(path).resume(true).checkpoint_interval(1)).result.resumed_from ==
        3);
}

TEST_CASE("a full disk is a warning, and the run ends as if there had been room", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const auto whole = plan.uninterrupted();
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  plan.stopped_after(4, path);
  const Warnings warnings;
  const auto full = [&] {
    const SmallDisk disk(4096);
    return plan.run(TrainOptions(plan.options).checkpoint(path).resume(true).checkpoint_interval(2));
  }();
  CHECK(full.result.stop_reason == StopReason::epochs);
  CHECK(at::equal(full.base, whole.base));
  CHECK_THAT(full.result.checkpoint_failure, ContainsSubstring("checkpoint.safetensors") && ContainsSubstring("File too large"));
  CHECK(full.result.checkpoint_epochs == 4);
  CHECK_THAT(warnings.text(), ContainsSubstring("no checkpoint after 6 epochs"));
  CHECK_THAT(warnings.text(), !ContainsSubstring("after 8 epochs"));                          // one warning for all in a row
  CHECK(folder.count() == 1 + (std::filesystem::exists(previous_checkpoint(path)) ? 1 : 0));  // nothing half-written
  const auto resumed = plan.resumed(path);
  CHECK(resumed.result.resumed_from == 4);
  CHECK(resumed.result.checkpoint_failure.empty());
  CHECK(resumed.result.checkpoint_epochs == 12);
  CHECK(at::equal(resumed.base, whole.base));
}

TEST_CASE("a checkpoint that cannot be written is tried again when there is room", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  std::optional<SmallDisk> disk(4096);
  std::vector<bool> there;
  const Warnings warnings;
  const auto outcome =
      plan.run(TrainOptions(plan.options).checkpoint(path).checkpoint_interval(2).callbacks({[&](const Progress& p) {
        there.push_back(std::filesystem::exists(path));
        if (p.loss.epoch == 4) disk.reset();
        return CallbackAction::proceed;
      }}));
  CHECK_FALSE(there[4]);
  CHECK(there[6]);  // the checkpoint after 6 epochs
  CHECK(outcome.result.checkpoint_failure.empty());
  CHECK(read_checkpoint(path)->epochs == 12);
}

TEST_CASE("what a killed process left beside a checkpoint is removed, and nothing else", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors", previous = previous_checkpoint(path);
  plan.run(TrainOptions(plan.options).checkpoint(path).checkpoint_interval(4));
  SECTION("killed between the rename of the previous one and its own: both are one file") {
    std::filesystem::remove(previous);
    std::filesystem::create_hard_link(path, previous);
    plan.run(TrainOptions(plan.options).epochs(14).checkpoint(path).resume(true).checkpoint_interval(1));
    CHECK(folder.count() == 2);
    CHECK(read_checkpoint(path)->epochs == 14);
    CHECK(read_checkpoint(previous)->epochs == 13);
  }
  SECTION("killed before that rename, or in the middle of a write") {
    std::filesystem::create_hard_link(path, folder / "checkpoint.previous.safetensors.link");
    std::ofstream(folder / ".checkpoint.safetensors.1-203.tmp") << "half";
    std::ofstream(folder / ".image.fits.1-203.tmp") << "another's";
    std::ofstream(folder / "notes.txt") << "mine";
    remove_checkpoint_leftovers(path);
    CHECK(folder.count() == 4);
    CHECK(std::filesystem::exists(folder / ".image.fits.1-203.tmp"));
    CHECK(std::filesystem::exists(folder / "notes.txt"));
    CHECK(read_checkpoint(path)->epochs == 12);
    CHECK(read_checkpoint(previous)->epochs == 8);
  }
}

TEST_CASE("notes are kept in the checkpoint and not compared; its header tells them and the settings", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  CHECK_FALSE(read_checkpoint_header(path).has_value());
  const auto with = [&](const std::string& device) {
    return TrainOptions(plan.options).checkpoint(path).checkpoint_interval(4).notes({{"device", device}, {"text", "a\n\"b\""}});
  };
  plan.run(with("here"));
  const auto header = read_checkpoint_header(path);
  REQUIRE(header.has_value());
  CHECK(header->notes == Notes{{"device", "here"}, {"text", "a\n\"b\""}});
  CHECK(header->settings.at("optimizer") == "adam");
  CHECK(header->settings == read_checkpoint(path)->settings);
  CHECK(plan.run(with("there").epochs(16).resume(true)).result.resumed_from == 12);
  CHECK(read_checkpoint(path)->notes.at("device") == "there");
  std::ofstream(path) << "damaged";
  CHECK(read_checkpoint_header(path)->notes.at("device") == "here");  // of the one before
}

TEST_CASE("a state that cannot be taken up leaves the model as it was", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  plan.run(TrainOptions(plan.options).checkpoint(path));
  auto file = read_safetensors(path);
  REQUIRE(file.tensors.erase("state.optimizer.model.bcube.base_cube.exp_avg") == 1);
  write_safetensors(path, file.tensors, file.metadata);
  auto model = plan.problem.model();
  const auto before = model->base().detach().clone();
  const auto objective = plan.problem.objective({Plan::noisy()});
  CHECK_THROWS_WITH(Trainer(model, objective, TrainOptions(plan.options).checkpoint(path).resume(true)).fit(),
                    ContainsSubstring("exp_avg"));
  CHECK(at::equal(model->base(), before));
}

TEST_CASE("a broken history of L-BFGS is refused", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::lbfgs);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  plan.run(TrainOptions(plan.options).epochs(2).checkpoint(path));
  auto file = read_safetensors(path);
  const std::string name = GENERATE("old_stps.0000", "ro.0000", "d");
  INFO(name);
  // A pair of which one part alone is there; a search without a direction.
  const auto key = "state.optimizer." + name;
  if (name != "d")
    file.tensors[key] = torch::zeros({name.starts_with("ro") ? 1 : plan.problem.model()->base().numel()}, torch::kFloat64);
  else REQUIRE(file.tensors.erase(key) == 1);
  write_safetensors(path, file.tensors, file.metadata);
  CHECK_THROWS_AS(plan.resumed(path), FileError);
}

TEST_CASE("Python's safetensors reads a checkpoint", "[train]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const auto outcome = plan.run(TrainOptions(plan.options).checkpoint(path));
  const auto printed = run_python(R"(
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], "np") as f:
    m, keys = f.metadata(), sorted(f.keys())
    assert m["format"] == "mpol_cpp checkpoint" and m["setting.optimizer"] == "adam", m
    print(m["epochs"], m["columns"], f.get_tensor("history").shape, int(f.get_tensor("state.optimizer.model.bcube.base_cube.step")))
    print(float(f.get_tensor("history")[-1, 1]).hex())
    print([k for k in keys if k.startswith("state.model")])
)",
                                  {path});
  CHECK_THAT(printed, ContainsSubstring("12 total,nll,sparsity,tv,tv_channel,noisy (12, 7) 12\n"));
  CHECK(std::stod(printed.substr(printed.find('\n') + 1)) == outcome.result.history.back().total());
  CHECK_THAT(printed, ContainsSubstring("['state.model.bcube.base_cube']"));
}
