#include "catch.h"

#include <memory>

#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/serialize/module_state.h>
#include <mpol_cpp/train/optimizers/saved_optimizer.h>
#include <mpol_cpp/train/steps/step_timing.h>

#include "compare.h"
#include "temporary_folder.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

std::unique_ptr<torch::optim::Optimizer> made_optimizer(const std::string& name, const GriddedNet& model) {
  if (name == "adam") return std::make_unique<torch::optim::Adam>(model->parameters(), 0.1);
  if (name == "sgd")
    return std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  return std::make_unique<torch::optim::LBFGS>(model->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(2));
}

void take_own_steps(torch::optim::Optimizer& optimizer, GriddedNet& model, const Objective& objective, int count) {
  for (int i = 0; i < count; ++i) {
    optimizer.step([&] {
      optimizer.zero_grad();
      auto loss = objective.evaluate(model).total.sum();
      loss.backward();
      return loss;
    });
  }
}

}  // namespace

TEST_CASE("a loop of one's own goes on from saved model and optimiser as if it had not ended", "[train][quick]") {
  const auto name = GENERATE(as<std::string>(), "adam", "sgd", "lbfgs");
  CAPTURE(name);
  const TemporaryFolder folder;
  const SmallProblem problem;
  const auto objective = problem.objective();
  auto whole = problem.model();
  const auto uninterrupted = made_optimizer(name, whole);
  take_own_steps(*uninterrupted, whole, objective, 5);
  save_model(folder / "model.safetensors", whole);
  save_optimizer(folder / "optimizer.safetensors", *uninterrupted, whole);
  take_own_steps(*uninterrupted, whole, objective, 4);

  auto resumed = problem.model();
  load_model(folder / "model.safetensors", resumed);
  const auto optimizer = made_optimizer(name, resumed);
  load_optimizer(folder / "optimizer.safetensors", *optimizer, resumed);
  take_own_steps(*optimizer, resumed, objective, 4);
  CHECK(same(resumed->base().detach(), whole->base().detach()));

  // Without the state it goes elsewhere.
  auto other = problem.model();
  load_model(folder / "model.safetensors", other);
  const auto fresh = made_optimizer(name, other);
  take_own_steps(*fresh, other, objective, 4);
  CHECK_FALSE(same(other->base().detach(), whole->base().detach()));
}

TEST_CASE("an optimiser's file is for the same optimiser and model", "[train][quick]") {
  const TemporaryFolder folder;
  const SmallProblem problem;
  auto model = problem.model(), stranger = problem.model();
  const auto adam = made_optimizer("adam", model);
  take_own_steps(*adam, model, problem.objective(), 1);
  const auto path = folder / "optimizer.safetensors";
  save_optimizer(path, *adam, model);
  CHECK_THROWS_WITH(load_optimizer(path, *made_optimizer("sgd", model), model), ContainsSubstring("is of adam"));
  CHECK_THROWS_WITH(save_optimizer(path, *adam, stranger), ContainsSubstring("none of the model's"));
  auto large = SmallProblem{.coords = GridCoords(0.05, 16)}.model();
  CHECK_THROWS_AS(load_optimizer(path, *made_optimizer("adam", large), large), FileError);
  torch::optim::RMSprop unknown(model->parameters());
  CHECK_THROWS_AS(save_optimizer(path, unknown, model), ValueError);
  save_model(folder / "model.safetensors", model);
  CHECK_THROWS_WITH(load_optimizer(folder / "model.safetensors", *adam, model), ContainsSubstring("save_optimizer"));
}

TEST_CASE("a step is timed in steps that follow each other", "[train][quick]") {
  const auto time = time_step(32, torch::kCPU, StepTimingOptions().nchan(2).dtype(torch::kFloat64).least_seconds(0.01));
  CHECK(time.seconds > 0);
  CHECK(time.seconds * static_cast<double>(time.steps) >= 0.01);
  CHECK(time.kind == StepKind::fused);
  CHECK_THROWS_AS(time_step(33, torch::kCPU), ValueError);
}
