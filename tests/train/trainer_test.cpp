#include "catch.h"

#include <limits>

#include <torch/cuda.h>

#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/options/stop_criterion.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

std::vector<double> totals(const TrainResult& result) {
  std::vector<double> values;
  for (const auto& loss : result.history) values.push_back(loss.total());
  return values;
}

}  // namespace

TEST_CASE("a fit does exactly its epochs and reports every one", "[train][quick]") {
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lbfgs);
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  INFO(to_string(optimizer));
  const SmallProblem problem{.dtype = dtype};
  auto model = problem.model();
  const auto objective = problem.objective();
  const auto start = objective.evaluate(*model).table();
  const auto result = Trainer(model, objective, TrainOptions().optimizer(optimizer).epochs(17)).fit();
  CHECK(result.epochs == 17);
  CHECK(result.stop_reason == StopReason::epochs);
  CHECK(result.diagnosis.empty());
  CHECK(result.columns == objective.columns());
  REQUIRE(result.history.size() == 17);
  for (std::size_t i = 0; i < 17; ++i) {
    CHECK(result.history[i].epoch == static_cast<std::int64_t>(i));
    CHECK(result.history[i].learning_rate == 0.3);
    CHECK(result.history[i].values.size() == 5);
  }
  CHECK(result.history[0].total() == Approx(start[0][0].item<double>()).epsilon(dtype == torch::kFloat64 ? 1e-13 : 1e-6));
  CHECK(result.loss.total() == objective.evaluate(*model).total.item<double>());
  // Both are the same function, but the fused step sums in another order.
  CHECK(result.loss.total() <= result.history.back().total() * (1 + (dtype == torch::kFloat64 ? 1e-13 : 1e-6)));
  CHECK(result.loss.total() < result.history.front().total());
  CHECK(result.step == StepKind::fused);
  CHECK(!result.step_reason.empty());
}

TEST_CASE("Adam is the formula of Kingma and Ba", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective();
  auto reference = problem.model();
  auto m = torch::zeros_like(reference->base()).detach(), v = m.clone();
  for (int epoch = 1; epoch <= 5; ++epoch) {
    reference->zero_grad();
    objective.evaluate(*reference).total.backward();
    const torch::NoGradGuard no_grad;
    const auto gradient = reference->base().grad();
    m = 0.9 * m + 0.1 * gradient;
    v = 0.999 * v + 0.001 * gradient.square();
    reference->base() -= 0.2 * (m / (1 - std::pow(0.9, epoch))) / ((v / (1 - std::pow(0.999, epoch))).sqrt() + 1e-8);
  }
  Trainer(model, objective, TrainOptions().learning_rate(0.2).epochs(5)).fit();
  CHECK(relative_error(model->base(), reference->base()) < 1e-12);
}

TEST_CASE("betas, weight decay and momentum are those of LibTorch's optimizers, whatever step takes them", "[train][quick]") {
  const SmallProblem problem;
  const auto step = GENERATE(StepKind::eager, StepKind::fused);
  const auto options = GENERATE(
      TrainOptions(TrainOptions().betas({0.7, 0.95})), TrainOptions(TrainOptions().betas({0.7, 0.95}).weight_decay(0.02)),
      TrainOptions(TrainOptions().optimizer(OptimizerKind::sgd).learning_rate(1e-2).momentum(0.5).weight_decay(0.3)));
  auto model = problem.model(), reference = problem.model();
  const auto objective = problem.objective();
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  const double rate = options.learning_rate(), decay = options.weight_decay();
  if (options.optimizer() == OptimizerKind::adam) {
    optimizer = std::make_unique<torch::optim::Adam>(reference->parameters(),
                                                     torch::optim::AdamOptions(rate).betas({0.7, 0.95}).weight_decay(decay));
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(reference->parameters(),
                                                    torch::optim::SGDOptions(rate).momentum(0.5).weight_decay(decay));
  }
  for (int epoch = 0; epoch < 8; ++epoch) {
    optimizer->zero_grad();
    objective.evaluate(reference).total.backward();
    optimizer->step();
  }
  const auto result = Trainer(model, objective, TrainOptions(options).epochs(8).step(step)).fit();
  CHECK(result.step == step);
  CHECK(relative_error(model->base(), reference->base()) < 1e-11);
  CHECK(relative_error(model->base(), problem.model()->base()) > 1e-3);
}

TEST_CASE("a fit takes any optimizer of LibTorch, eager and on the fused gradient", "[train][quick]") {
  const SmallProblem problem;
  const auto step = GENERATE(StepKind::eager, StepKind::fused);
  auto model = problem.model(), reference = problem.model();
  const auto objective = problem.objective();
  torch::optim::RMSprop optimizer(reference->parameters(), torch::optim::RMSpropOptions(0.02).alpha(0.9));
  for (int epoch = 0; epoch < 10; ++epoch) {
    optimizer.zero_grad();
    objective.evaluate(reference).total.backward();
    optimizer.step();
  }
  const auto rms_prop = OwnOptimizer{"rmsprop 0.9", [](std::vector<Tensor> parameters) {
                                       return std::make_unique<torch::optim::RMSprop>(
                                           std::move(parameters), torch::optim::RMSpropOptions(1.0).alpha(0.9));
                                     }};
  const auto options = TrainOptions().optimizer(rms_prop).learning_rate(0.02).epochs(10).step(step);
  CHECK(Trainer(model, objective, options).fit().step == step);
  CHECK(relative_error(model->base(), reference->base()) < 1e-9);

  const auto none = OwnOptimizer{"none", [](const std::vector<Tensor>&) { return nullptr; }};
  CHECK_THROWS_WITH(Trainer(model, objective, TrainOptions().optimizer(none)).fit(), ContainsSubstring("gave none"));
  CHECK_THROWS_WITH(Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::own)), ContainsSubstring("set both"));
}

TEST_CASE("the same fit twice is the same bit for bit", "[train][quick]") {
  const SmallProblem problem;
  auto first = problem.model(), second = problem.model();
  const auto a = Trainer(first, problem.objective(), TrainOptions().epochs(20)).fit();
  const auto b = Trainer(second, problem.objective(), TrainOptions().epochs(20)).fit();
  CHECK(same_history(a.history, b.history));
  CHECK(at::equal(first->base(), second->base()));
}

TEST_CASE("the seed decides what a random term sees", "[train][quick]") {
  const SmallProblem problem;
  const auto noisy = Term("noisy", 1e-3, [](const ModelOutput& out) {
    return (out.sky * at::rand_like(out.sky)).sum({-3, -2, -1});
  });
  const auto fit = [&](std::uint64_t seed) {
    return totals(Trainer(problem.model(), problem.objective({noisy}), TrainOptions().epochs(4).seed(seed)).fit());
  };
  CHECK(fit(1) == fit(1));
  CHECK(fit(1) != fit(2));
}

TEST_CASE("a batch of problems is fitted as each of them alone", "[train][quick]") {
  const auto [optimizer, rate] = GENERATE(std::pair(OptimizerKind::adam, 0.3), std::pair(OptimizerKind::sgd, 1.0));
  const SmallProblem problem;
  auto batch = problem.model({3});
  const auto bases = batch->base().detach().clone();
  const auto options = TrainOptions().optimizer(optimizer).learning_rate(rate).epochs(30);
  const auto together = Trainer(batch, problem.objective(), options).fit();
  double sum = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    auto single = problem.model_of(bases[i]);
    sum += Trainer(single, problem.objective(), options).fit().loss.total();
    CHECK(relative_error(batch->base()[i], single->base()) < 1e-9);
  }
  CHECK(together.loss.total() == Approx(sum).epsilon(1e-11));
}

TEST_CASE("schedules multiply the learning rate", "[train][quick]") {
  const SmallProblem problem;
  const auto rates = [&](const LearningRateSchedule& schedule) {
    const auto result =
        Trainer(problem.model(), problem.objective(), TrainOptions().learning_rate(2.0).schedule(schedule).epochs(5)).fit();
    std::vector<double> values;
    for (const auto& loss : result.history) values.push_back(loss.learning_rate);
    return values;
  };
  CHECK(rates({}) == std::vector<double>{2, 2, 2, 2, 2});
  CHECK(rates(LearningRateSchedule::exponential(0.5)) == std::vector<double>{2, 1, 0.5, 0.25, 0.125});
  CHECK(rates(LearningRateSchedule::step(2, 0.5)) == std::vector<double>{2, 2, 1, 1, 0.5});
  const auto cosine = LearningRateSchedule::cosine(4, 0.2);
  CHECK(cosine.factor(0) == 1.0);
  CHECK(cosine.factor(2) == Approx(0.6).epsilon(1e-14));
  CHECK(cosine.factor(4) == 0.2);
  CHECK(cosine.factor(100) == 0.2);
  CHECK_THROWS_AS(LearningRateSchedule::exponential(0.0), ValueError);
  CHECK_THROWS_AS(LearningRateSchedule::step(0, 0.5), ValueError);
  CHECK_THROWS_AS(LearningRateSchedule::cosine(10, 2.0), ValueError);
}

TEST_CASE("a schedule changes the trajectory as its rates say", "[train][quick]") {
  const SmallProblem problem;
  auto scheduled = problem.model(), stepwise = problem.model();
  const auto objective = problem.objective();
  const auto sgd = TrainOptions().optimizer(OptimizerKind::sgd);
  Trainer(scheduled, objective, TrainOptions(sgd).learning_rate(2.0).schedule(LearningRateSchedule::exponential(0.5)).epochs(3))
      .fit();
  for (const double rate : {2.0, 1.0, 0.5}) Trainer(stepwise, objective, TrainOptions(sgd).learning_rate(rate).epochs(1)).fit();
  CHECK(at::equal(scheduled->base(), stepwise->base()));
}

TEST_CASE("momentum accelerates gradient descent", "[train][quick]") {
  const SmallProblem problem;
  const auto sgd = TrainOptions().optimizer(OptimizerKind::sgd).learning_rate(1.0).epochs(20);
  const auto plain = Trainer(problem.model(), problem.objective(), sgd).fit();
  const auto heavy = Trainer(problem.model(), problem.objective(), TrainOptions(sgd).momentum(0.9)).fit();
  CHECK(heavy.loss.total() < plain.loss.total());
}

TEST_CASE("the stop criterion compares the total over its window", "[train][quick]") {
  const auto history = [](const std::vector<double>& values) {
    LossHistory rows;
    for (const auto value : values) rows.push_back({static_cast<std::int64_t>(rows.size()), 0.3, {value, value}});
    return rows;
  };
  CHECK(!has_converged(history({1, 1}), 1e-3, 2));
  CHECK(!has_converged(history({1, 5, 1}), 1e-3, 2));  // it swings
  CHECK(!has_converged(history({1, 5, 1}), 1e-3, 1));
  CHECK(has_converged(history({5, 1, 1, 1}), 1e-3, 2));
  CHECK(!has_converged(history({5, 1, 1, 1}), 1e-3, 3));
  CHECK(!has_converged(history({1, 1, 0.99}), 1e-2, 2));
  CHECK(has_converged(history({1, 1, 0.995}), 1e-2, 2));
  CHECK(!has_converged(history({1, 1, 1}), 0.0, 1));
}

TEST_CASE("a fit stops at the first epoch that meets the criterion", "[train][quick]") {
  const SmallProblem problem;
  const auto options = TrainOptions().epochs(2000).stop_relative(1e-4).stop_window(5);
  const auto result = Trainer(problem.model(), problem.objective(), options).fit();
  CHECK(result.stop_reason == StopReason::converged);
  REQUIRE(result.epochs < 2000);
  CHECK(static_cast<std::int64_t>(result.history.size()) == result.epochs);
  CHECK(has_converged(result.history, 1e-4, 5));
  auto earlier = result.history;
  earlier.pop_back();
  CHECK(!has_converged(earlier, 1e-4, 5));
}

TEST_CASE("callbacks see every epoch in order and may end the fit", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  std::vector<std::int64_t> seen;
  Tensor base;
  const auto watch = [&](const Progress& progress) {
    seen.push_back(progress.loss.epoch);
    base = progress.model.base().detach().clone();
    CHECK(progress.epochs == 50);
    CHECK(progress.columns.size() == progress.loss.values.size());
    return CallbackAction::proceed;
  };
  const auto stop = [](const Progress& progress) {
    return progress.loss.epoch == 7 ? CallbackAction::stop : CallbackAction::proceed;
  };
  const auto result = Trainer(model, problem.objective(), TrainOptions().epochs(50).callbacks({stop, watch})).fit();
  CHECK(result.stop_reason == StopReason::callback);
  CHECK(result.epochs == 8);
  CHECK(seen == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(at::equal(base, model->base()));
}

TEST_CASE("an interruption finishes the epoch and ends the fit", "[train][quick]") {
  const SmallProblem problem;
  int polls = 0;
  const auto options = TrainOptions().epochs(50).interrupted([&] { return ++polls == 4; });
  const auto result = Trainer(problem.model(), problem.objective(), options).fit();
  CHECK(result.stop_reason == StopReason::interrupted);
  CHECK(result.epochs == 4);
  CHECK(result.history.size() == 4);
}

TEST_CASE("the model decides in which dtype a fit computes, and the data stay as they are", "[train][quick]") {
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  CAPTURE(likelihood, to_string(step));
  const SmallProblem problem{.likelihood = likelihood};  // its data are float64
  const auto objective = problem.objective();
  auto single = problem.model(), cast = problem.model(), wide = problem.model();
  single->to(torch::kFloat32);
  const auto options = TrainOptions().epochs(5).step(step);
  const auto result = Trainer(single, objective, options).fit();
  CHECK(result.step == step);
  CHECK(result.loss.total() == Approx(Trainer(wide, objective, options).fit().loss.total()).epsilon(1e-5));
  for (const auto& buffer : objective.likelihood().as_module().buffers()) {
    if (buffer.is_floating_point()) CHECK(buffer.scalar_type() == torch::kFloat64);
  }
  if (likelihood != "gridded") return;
  // As if the data had been cast before.
  const auto of_cast = SmallProblem{.dtype = torch::kFloat32}.objective();
  CHECK(same_history(Trainer(cast, of_cast, TrainOptions(options).dtype(torch::kFloat32)).fit().history, result.history));
  CHECK(torch::equal(cast->base(), single->base()));
}

TEST_CASE("a dtype in the options casts the model alone", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective();
  const auto single = Trainer(model, objective, TrainOptions().epochs(5).dtype(torch::kFloat32).device(torch::kCPU)).fit();
  CHECK(model->base().scalar_type() == torch::kFloat32);
  CHECK(objective.likelihood().as_module().named_buffers()["weights"].scalar_type() == torch::kFloat64);
  const auto wide = Trainer(problem.model(), problem.objective(), TrainOptions().epochs(5)).fit();
  CHECK(single.loss.total() == Approx(wide.loss.total()).epsilon(1e-5));
  CHECK(single.loss.total() != wide.loss.total());
  CHECK(TrainOptions().precision({torch::kFloat64}).dtype() == torch::kFloat64);
  CHECK_THROWS_AS(TrainOptions().precision({torch::kFloat16}), ValueError);
}

TEST_CASE("a likelihood's own parameters are trained too", "[train][quick]") {
  struct ScaledImpl : GriddedLikelihoodImpl {
    explicit ScaledImpl(const GriddedDataset& dataset) : GriddedLikelihoodImpl(dataset) {
      scale = register_parameter("scale", torch::ones({}, torch::kFloat64));
    }
    Tensor chi_squared(const Tensor& sky) override { return GriddedLikelihoodImpl::chi_squared(sky * scale); }
    Tensor scale;
  };
  const SmallProblem problem;
  const auto likelihood = std::make_shared<ScaledImpl>(random_dataset(problem.coords, problem.nchan, 7));
  Trainer(problem.model(), Objective(std::shared_ptr<Likelihood>(likelihood), {}), TrainOptions().epochs(3)).fit();
  CHECK(likelihood->scale.item<double>() != 1.0);
}

TEST_CASE("model and data on different devices are one error that names both", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  model->to(torch::kMeta);
  CHECK_THROWS_AS(Trainer(model, problem.objective(), TrainOptions().epochs(1)).fit(), DeviceError);
  CHECK_THROWS_WITH(Trainer(model, problem.objective(), TrainOptions().epochs(1)).fit(),
                    ContainsSubstring("meta") && ContainsSubstring("cpu") && ContainsSubstring("bcube.base_cube"));
}

TEST_CASE("a device that is not there is one line", "[train][quick]") {
  if (torch::cuda::is_available()) return;  // there it is
  const SmallProblem problem;
  const auto options = TrainOptions().epochs(1).device(torch::Device("cuda:0"));
  CHECK_THROWS_AS(Trainer(problem.model(), problem.objective(), options).fit(), DeviceError);
  CHECK_THROWS_WITH(Trainer(problem.model(), problem.objective(), options).fit(),
                    ContainsSubstring("devices here: cpu") && !ContainsSubstring("\n"));
}

TEST_CASE("a step that does not apply is refused, not replaced", "[train][quick]") {
  const SmallProblem problem;
  const auto fit = [&](StepKind kind) {
    return Trainer(problem.model(), problem.objective(), TrainOptions().epochs(1).step(kind)).fit();
  };
  CHECK_THROWS_WITH(fit(StepKind::captured), ContainsSubstring("captured"));
  CHECK_THROWS_AS(fit(StepKind::captured), ValueError);
  auto user_model = GriddedNet(
      GriddedNetOptions(problem.coords)
          .nchan(2)
          .pixel_mapping({.name = "square", .forward = [](const Tensor& base) { return base.square(); }, .inverse = {}}));
  const auto fused = TrainOptions().epochs(1).step(StepKind::fused);
  CHECK_THROWS_WITH(Trainer(user_model, problem.objective(), fused).fit(), ContainsSubstring("square"));
  for (const auto kind : {StepKind::eager, StepKind::fused}) CHECK(fit(kind).step == kind);
}

TEST_CASE("options out of range are refused by name", "[train][quick]") {
  const SmallProblem problem;
  const auto check = [&](const TrainOptions& options, const char* name) {
    CHECK_THROWS_AS(Trainer(problem.model(), problem.objective(), options), ValueError);
    CHECK_THROWS_WITH(Trainer(problem.model(), problem.objective(), options), ContainsSubstring(name));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check(TrainOptions().learning_rate(0), "learning_rate");
  check(TrainOptions().learning_rate(nan), "learning_rate");
  check(TrainOptions().epochs(0), "epochs");
  check(TrainOptions().stop_relative(-1), "stop_relative");
  check(TrainOptions().stop_window(0), "stop_window");
  check(TrainOptions().model_interval(-1), "model_interval");
  check(TrainOptions().checkpoint_interval(-1), "checkpoint_interval");
  check(TrainOptions().optimizer(OptimizerKind::sgd).momentum(1.0), "momentum");
  check(TrainOptions().momentum(0.5), "momentum");
  check(TrainOptions().betas({1.0, 0.9}), "betas");
  check(TrainOptions().betas({0.9, -0.1}), "betas");
  check(TrainOptions().weight_decay(-1), "weight_decay");
  check(TrainOptions().optimizer(OptimizerKind::lbfgs).weight_decay(0.1), "weight_decay");
  check(TrainOptions().weight_decay(0.1).rate_factors({1.0}), "weight_decay");
  check(TrainOptions().resume(true), "resume");
  auto frozen = problem.model();
  frozen->base().set_requires_grad(false);
  CHECK_THROWS_WITH(Trainer(frozen, problem.objective(), TrainOptions().epochs(1)).fit(), ContainsSubstring("nothing to train"));
}
