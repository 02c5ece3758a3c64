#include "catch.h"

#include <cmath>
#include <memory>
#include <thread>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/train/checkpoint.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords batch_grid(0.05, 16);
const auto batches_of_300 = VisibilitySamplerOptions().batch_size(300).seed(3);  // of 800: 267, 267, 266

Visibilities batch_data() { return random_visibilities(batch_grid, 2, 7); }

MiniBatchLikelihood in_batches(const NoiseModel& noise = NoiseModel::gaussian()) {
  return MiniBatchLikelihood(batch_grid, batch_data(), ChannelMap::cube(2), batches_of_300, noise, NufftOptions{1e-12});
}

std::pair<Tensor, Tensor> evaluate_batch(Likelihood& likelihood, const Tensor& sky) {
  auto gradient = torch::full_like(sky, 7.0);
  const auto value = likelihood.value_and_gradient(sky, gradient, Accumulate::overwrite);
  return {value, gradient};
}

}  // namespace

TEST_CASE("batches of an epoch, weighted by their sizes, are the whole", "[losses][batches][quick]") {
  const auto noise = GENERATE(NoiseModel::gaussian(), NoiseModel::student(3));
  CAPTURE(to_string(noise.kind));
  auto batches = in_batches(noise);
  auto whole = NoiseLikelihood(batch_grid, batch_data(), ChannelMap::cube(2), noise, NufftOptions{1e-12});
  const auto sky = uniform({2, 16, 16}, torch::kFloat64, 5);
  const auto [expected, expected_gradient] = evaluate_batch(*whole, sky);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto value = torch::zeros({}, torch::kFloat64), gradient = torch::zeros_like(sky);
    REQUIRE(batches->batches() == 3);
    for (const double size : {267.0, 267.0, 266.0}) {
      const auto [own, slope] = evaluate_batch(*batches, sky);
      value = value + own * (size / 800);
      gradient = gradient + slope * (size / 800);
    }
    CHECK(relative_error(value, expected) < 1e-10);
    CHECK(relative_error(gradient, expected_gradient) < 1e-10);
  }
  CHECK(batches->position() == 6);
  {
    const torch::NoGradGuard no_grad;
    CHECK(relative_error(batches->chi_squared(sky), expected) < 1e-10);
  }
  CHECK(relative_error(batches->chi_squared(sky), expected) < 1e-10);  // the image requires no gradient
  CHECK(batches->position() == 6);
  CHECK(batches->normalizer() == whole->normalizer());
  CHECK(batches->samples() == whole->samples());
}

TEST_CASE("the next batch is made ready while the last one is in use, and no further one", "[losses][batches][quick]") {
  const auto noise = GENERATE(NoiseModel::gaussian(), NoiseModel::huber(2));
  auto batches = in_batches(noise);
  const auto sky = uniform({2, 16, 16}, torch::kFloat64, 5);
  CHECK(batches->prepared() == 0);
  for (int taken = 1; taken <= 5; ++taken) {  // beyond an epoch of 3
    evaluate_batch(*batches, sky);
    CHECK(batches->prepared() <= taken + 1);
    while (batches->prepared() < taken + 1) std::this_thread::yield();  // without anybody asking for it
  }
  // A copy and an earlier position begin anew, with the same batches.
  batches->load_working_state({{"position", torch::tensor(std::int64_t{1})}});
  CHECK(batches->prepared() == 1);
  auto fresh = in_batches(noise);
  evaluate_batch(*fresh, sky);
  const auto copy = std::dynamic_pointer_cast<MiniBatchLikelihoodImpl>(fresh->clone());
  const auto [value, gradient] = evaluate_batch(*fresh, sky);
  for (auto* other : {&*batches, copy.get()}) {
    const auto [own, slope] = evaluate_batch(*other, sky);
    CHECK(same(own, value));
    CHECK(same(slope, gradient));
    CHECK(other->position() == 2);
  }
}

TEST_CASE("a batch of which nothing comes is an error, again and again, and no hang", "[losses][batches][quick]") {
  auto batches = MiniBatchLikelihood(batch_grid, batch_data(), ChannelMap::cube(2), batches_of_300, NoiseModel::gaussian(),
                                     NufftOptions{1e-9});
  for (int i = 0; i < 2; ++i) {  // 1e-9 cannot be had in float32, which a thread of its own finds out
    CHECK_THROWS_WITH(evaluate_batch(*batches, uniform({2, 16, 16}, torch::kFloat32, 5)), ContainsSubstring("tolerance"));
  }
  CHECK(batches->position() == 0);
  CHECK_THROWS_AS(evaluate_batch(*batches, uniform({2, 16, 8}, torch::kFloat64, 5)), ShapeError);
}

TEST_CASE("autograd sees the batches that value_and_gradient sees", "[losses][batches][quick]") {
  auto one = in_batches(), other = in_batches();
  const auto sky = uniform({2, 16, 16}, torch::kFloat64, 5);
  for (int i = 0; i < 4; ++i) {
    const auto [value, gradient] = evaluate_batch(*one, sky);
    Tensor own;
    const auto slope = gradient_of([&](const Tensor& x) { return own = other->chi_squared(x); }, sky);
    CHECK(relative_error(own, value) < 1e-11);
    CHECK(relative_error(slope, gradient) < 1e-10);
  }
  auto added = torch::ones_like(sky);
  const auto position = one->working_state();
  const auto [value, gradient] = evaluate_batch(*one, sky);
  one->load_working_state(position);
  one->value_and_gradient(sky, added, Accumulate::add);
  CHECK(relative_error(added, gradient + 1) < 1e-13);
  CHECK_THROWS_AS(one->load_working_state({}), FileError);
  CHECK_THROWS_WITH(one->load_working_state({{"position", torch::tensor(-1)}}), ContainsSubstring("-1"));
  CHECK_THROWS_AS(MiniBatchLikelihood(batch_grid, batch_data(), ChannelMap::cube(2), VisibilitySamplerOptions().batch_size(0)),
                  ValueError);
  CHECK_THROWS_AS(MiniBatchLikelihood(batch_grid, batch_data(), ChannelMap::cube(3), batches_of_300), ValueError);
}

TEST_CASE("the memory of batches is that of the data and of what chooses them", "[losses][batches][quick]") {
  auto random = in_batches();
  const auto data = batch_data();
  CHECK(random->memory_bytes() == data.memory_bytes());
  evaluate_batch(*random, torch::ones({2, 16, 16}, torch::kFloat64));
  CHECK(random->memory_bytes() == data.memory_bytes() + 8 * data.nvis());
  const auto uniform = VisibilitySamplerOptions().batch_size(300).sampling(Sampling::uniform);
  const auto sorted = MiniBatchLikelihood(batch_grid, data, ChannelMap::cube(2), uniform);
  CHECK(sorted->memory_bytes() == data.memory_bytes() + 8 * data.nvis());
}

TEST_CASE("a fit in batches comes near that of all data, and is resumed bit for bit", "[losses][batches]") {
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  const TemporaryFolder folder;
  const SmallProblem problem{.coords = batch_grid};
  const auto options = TrainOptions().learning_rate(0.1).step(step);
  const auto fit = [&](std::int64_t epochs, const std::string& checkpoint) {
    auto model = problem.model();
    auto own = TrainOptions(options).epochs(epochs);
    if (!checkpoint.empty()) own.checkpoint(folder / checkpoint).resume(true);
    const auto result = Trainer(model, Objective(in_batches()), own).fit();
    CHECK(result.step == step);
    return std::pair(result, model->base().detach().clone());
  };
  const auto [whole, base] = fit(50, "");
  fit(20, "a");
  const auto [resumed, resumed_base] = fit(50, "a");
  CHECK(same(resumed_base, base));
  CHECK(resumed.loss.total() == whole.loss.total());
  auto model = problem.model();
  auto loose = LooseLikelihood(batch_grid, batch_data(), ChannelMap::cube(2));
  const auto of_all = Trainer(model, Objective(loose), TrainOptions(options).epochs(50)).fit();
  CHECK(whole.loss.total() < 0.85 * of_all.history.front().total());
  CHECK(whole.loss.total() == Approx(of_all.loss.total()).epsilon(0.1));
}

TEST_CASE("the checkpoint of a fit in batches that diverged is of its last good epoch, also its position", "[losses][batches]") {
  const TemporaryFolder folder;
  const SmallProblem problem{.coords = batch_grid};
  auto model = problem.model();
  const double start = model->base().flatten()[0].item<double>();
  // Once the first pixel has moved so far: 0, with the gradient of a square root at 0.
  const Term edge("mine", 1.0, [start](const ModelOutput& out) {
    const auto sum = out.sky.sum({-3, -2, -1});
    const bool beyond = std::abs(out.base.flatten()[0].item<double>() - start) > 0.45;
    return beyond ? (sum - sum.detach()).square().sqrt() : sum * 0.0;
  });
  const auto path = folder / "checkpoint.safetensors";
  const auto options = TrainOptions().learning_rate(0.1).step(StepKind::eager).epochs(50).checkpoint(path);
  const auto result = Trainer(model, Objective(in_batches(), {edge}), options).fit();
  REQUIRE(result.stop_reason == StopReason::diverged);
  REQUIRE(result.epochs > 2);
  const auto checkpoint = read_checkpoint(path);
  CHECK(checkpoint->epochs == result.epochs);
  CHECK(checkpoint->state.at("likelihood_state.position").item<std::int64_t>() == result.epochs);
}
