#include "catch.h"

#include <csignal>
#include <fstream>

#include <sys/resource.h>

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
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lbfgs);
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  INFO(to_string(optimizer));
  auto plan = plan_for(optimizer);
  plan.problem.dtype = dtype;
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

TEST_CASE("a full disk ends the run and leaves the last good checkpoint", "[train][quick]") {
  const auto plan = plan_for(OptimizerKind::adam);
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  plan.stopped_after(4, path);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_THROWS_AS(plan.run(TrainOptions(plan.options).checkpoint(path).resume(true).checkpoint_interval(2)), FileError);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(folder.count() == 1 + (std::filesystem::exists(previous_checkpoint(path)) ? 1 : 0));  // nothing half-written
  const auto resumed = plan.resumed(path);
  CHECK(resumed.result.resumed_from == 4);
  CHECK(at::equal(resumed.base, plan.uninterrupted().base));
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
