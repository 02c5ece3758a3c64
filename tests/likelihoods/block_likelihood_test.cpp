#include "catch.h"

#include <cmath>

#include <ATen/ops/polar.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/likelihoods/block_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "random.h"
#include "tight_allocator.h"
#include "warnings.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords block_grid(0.05, 16);

/// What is wrong with a block of data.
struct BlockFault {
  double east = 0, north = 0;  // arcsec
  double amplitude = 1, weight_scale = 1;
};

/// Visibilities of a smooth source, with noise whose variance is 1/(weight_scale weight).
Visibilities faulty_block(const BlockFault& fault, std::int64_t nvis, std::uint64_t seed) {
  const auto r2 = block_grid.sky_x().square() + block_grid.sky_y().square();
  const auto sky = (-r2 / (2 * 0.12 * 0.12)).exp().unsqueeze(0) * 20;
  const double longest = 0.8 * block_grid.max_uv();
  const auto u = (2 * uniform({nvis}, torch::kFloat64, seed) - 1) * longest;
  const auto v = (2 * uniform({nvis}, torch::kFloat64, seed + 1) - 1) * longest;
  const auto baselines = Baselines::in_lambda(u, v);
  const auto angle = -2 * units::pi * units::arcsec * (u * fault.east + v * fault.north);
  const auto model = direct_visibilities(sky, block_grid, baselines, 1) * at::polar(torch::ones_like(angle), angle);
  const auto weights = torch::full({1, nvis}, 1e4, torch::kFloat64);
  const auto noise = normal({1, nvis}, torch::kComplexDouble, seed + 2) * std::sqrt(2 / (1e4 * fault.weight_scale));
  return {baselines, model * fault.amplitude + noise, weights};
}

DataBlock free_block(const BlockFault& fault, std::int64_t nvis, std::uint64_t seed) {
  return DataBlock(faulty_block(fault, nvis, seed), ChannelMap::cube(1)).fit_shift().fit_amplitude().fit_weight_scale();
}

}  // namespace

TEST_CASE("blocks without parameters are the loose likelihood of all their data", "[losses][blocks][quick]") {
  const auto first = faulty_block({}, 60, 1), second = faulty_block({}, 40, 11);
  auto blocks =
      BlockLikelihood(block_grid, std::vector{DataBlock(first, ChannelMap::cube(1)), DataBlock(second, ChannelMap::cube(1))},
                      BlockLikelihoodOptions().transform(NufftOptions{1e-12}));
  const auto sky = random_image(block_grid, 1, torch::kFloat64, 5);
  auto expected_gradient = torch::zeros_like(sky), gradient = torch::full_like(sky, 7.0);
  auto expected = torch::zeros({}, torch::kFloat64);
  for (const auto& data : {first, second}) {
    auto loose = LooseLikelihood(block_grid, data, ChannelMap::cube(1), NufftOptions{1e-12});
    expected = expected + loose->value_and_gradient(sky, expected_gradient, Accumulate::add);
  }
  CHECK(relative_error(blocks->value_and_gradient(sky, gradient, Accumulate::overwrite), expected) < 1e-11);
  CHECK(relative_error(gradient, expected_gradient) < 1e-10);
  CHECK(relative_error(blocks->chi_squared(sky), expected) < 1e-11);
  CHECK(blocks->samples() == 100);
  CHECK(blocks->parameters().empty());
  CHECK(blocks->normalizer() <= 100);
  CHECK(blocks->normalizer() >= 40);
}

TEST_CASE("blocks in chunks have the values and gradients of blocks in one piece", "[losses][blocks][quick]") {
  const std::vector<DataBlock> data = {free_block({0.02, -0.03, 1.1, 2}, 50, 1),
                                       DataBlock(faulty_block({}, 40, 11), ChannelMap::cube(1))};
  const auto sky = uniform({2, 1, 16, 16}, torch::kFloat64, 5).set_requires_grad(true);  // two problems
  const auto evaluate = [&](std::int64_t samples_at_once) {
    auto blocks =
        BlockLikelihood(block_grid, data, BlockLikelihoodOptions().transform(NufftOptions{1e-13}).chunk(samples_at_once));
    {
      const torch::NoGradGuard no_grad;
      for (auto& parameter : blocks->parameters()) parameter.add_(0.1);
    }
    const auto value = blocks->chi_squared(sky);
    std::vector<Tensor> inputs = blocks->parameters();
    inputs.push_back(sky);
    const auto weights = torch::tensor({1.0, -0.3}, torch::kFloat64);
    auto result = torch::autograd::grad({(value * weights).sum()}, inputs);
    result.push_back(value.detach());
    CHECK(blocks->chi_squared(sky.detach()).sizes() == value.sizes());
    return result;
  };
  const auto expected = evaluate(0);
  for (const std::int64_t chunk : {1, 7, 40, 1000}) {
    const auto own = evaluate(chunk);
    REQUIRE(own.size() == expected.size());
    for (std::size_t i = 0; i < own.size(); ++i) CHECK(relative_error(own[i], expected[i]) < 1e-10);
  }
  CHECK_THROWS_AS(BlockLikelihood(block_grid, data, BlockLikelihoodOptions().chunk(-1)), ValueError);
  CHECK_THROWS_AS(BlockLikelihood(block_grid, data, BlockLikelihoodOptions().memory_budget(-1)), ValueError);
}

TEST_CASE("second derivatives of blocks are those of finite differences, in one piece and in chunks", "[losses][blocks][quick]") {
  const auto chunk = GENERATE(0, 7);
  auto blocks = BlockLikelihood(block_grid, std::vector{free_block({0.02, -0.03, 1.1, 2}, 50, 1)},
                                BlockLikelihoodOptions().transform(NufftOptions{1e-13}).chunk(chunk));
  const auto sky = random_image(block_grid, 1, torch::kFloat64, 5), direction = normal(sky.sizes(), torch::kFloat64, 7);
  const auto inputs_at = [&](double step) {
    std::vector<Tensor> inputs = blocks->parameters();
    inputs.push_back((sky + step * direction).set_requires_grad(true));
    return inputs;
  };
  const auto slopes_at = [&](double step, bool create_graph) {
    const auto inputs = inputs_at(step);
    return std::pair(inputs, torch::autograd::grad({blocks->chi_squared(inputs.back())}, inputs, {}, true, create_graph));
  };
  const auto [inputs, slopes] = slopes_at(0, true);
  const auto [ignored_after, after] = slopes_at(1e-5, false);
  const auto [ignored_before, before] = slopes_at(-1e-5, false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto weights = normal(slopes[i].sizes(), torch::kFloat64, 8 + i);
    const auto second = torch::autograd::grad({(slopes[i] * weights).sum()}, {inputs.back()}, {}, true)[0];
    const auto expected = ((after[i] - before[i]) * weights).sum() / 2e-5;
    CHECK(relative_error((second * direction).sum(), expected) < 1e-6);
  }
}

TEST_CASE("chunks of blocks are as large as a budget, and data may stay on the host", "[losses][blocks][quick]") {
  const std::vector<DataBlock> data = {free_block({0.02, -0.03, 1.1, 2}, 3000, 1),
                                       DataBlock(faulty_block({}, 1000, 11), ChannelMap::cube(1))};
  const auto sky = random_image(block_grid, 1, torch::kFloat64, 5);
  const auto options = BlockLikelihoodOptions().transform(NufftOptions{1e-12});
  const auto gradient = [&](BlockLikelihood& blocks) {
    return gradient_of([&](const Tensor& x) { return blocks->chi_squared(x); }, sky);
  };
  const Warnings warnings;
  auto whole = BlockLikelihood(block_grid, data, options);
  CHECK(whole->chunk() == 0);
  const auto expected = gradient(whole);
  CHECK(whole->chunk() == 3000);
  CHECK(warnings.said().empty());
  const bool on_host = GENERATE(false, true);
  auto small = BlockLikelihood(block_grid, data, BlockLikelihoodOptions(options).memory_budget(3e5).on_host(on_host));
  const auto before = small->memory_bytes();
  for (int i = 0; i < 2; ++i) CHECK(relative_error(gradient(small), expected) < 1e-10);
  CHECK(small->chunk() >= 256);
  CHECK(small->chunk() < 1000);
  CHECK(small->memory_bytes() == before);  // sorted points are not kept
  REQUIRE(warnings.said().size() == 1);
  CHECK_THAT(warnings.said().front(), ContainsSubstring("steps see all of them"));
  CHECK(small->named_buffers().size() == (on_host ? 0 : 6));
  CHECK(small->named_parameters().size() == 3);

  auto resumed = BlockLikelihood(block_grid, data, options);
  resumed->load_working_state(small->working_state());
  CHECK(same(gradient(resumed), gradient(small)));
  CHECK_THROWS_AS(resumed->load_working_state({{"chunk", torch::tensor(std::int64_t{0})}}), FileError);
}

TEST_CASE("blocks that run out of memory go on in chunks, for the value and for the gradient", "[losses][blocks][quick]") {
  const std::vector<DataBlock> data = {free_block({0.02, -0.03, 1.1, 2}, 6000, 1),
                                       DataBlock(faulty_block({}, 20000, 11), ChannelMap::cube(1))};
  const auto options = BlockLikelihoodOptions().transform(NufftOptions{1e-12}).chunk(20000);
  const auto sky = random_image(block_grid, 1, torch::kFloat64, 5).set_requires_grad(true);
  auto whole = BlockLikelihood(block_grid, data, options);
  const auto value = whole->chi_squared(sky);
  std::vector<Tensor> inputs = whole->parameters();
  inputs.push_back(sky);
  const auto expected = torch::autograd::grad({value}, inputs);
  const bool from_the_value_on = GENERATE(true, false);
  auto tight = BlockLikelihood(block_grid, data, options);
  const Warnings warnings;
  std::vector<Tensor> own = tight->parameters(), slopes;
  own.push_back(sky);
  const auto evaluate = [&] {
    const auto found = tight->chi_squared(sky);
    CHECK(relative_error(found, value) < 1e-11);
    return found;
  };
  Tensor before;
  if (!from_the_value_on) before = evaluate();
  {
    const TightAllocator allocator(16 * 6000);  // models of 6000 samples
    if (from_the_value_on) before = evaluate();
    slopes = torch::autograd::grad({before}, own);
  }
  for (std::size_t i = 0; i < own.size(); ++i) CHECK(relative_error(slopes[i], expected[i]) < 1e-10);
  CHECK(tight->chunk() == 5000);
  REQUIRE(warnings.said().size() == 1);
  CHECK_THAT(warnings.said().front(), ContainsSubstring("20000 visibilities at a time") && ContainsSubstring("10000"));
  const TightAllocator nothing(3000);  // an image, but not 256 samples
  CHECK_THROWS_WITH(tight->chi_squared(sky), ContainsSubstring("out of memory") && ContainsSubstring("smaller image"));
}

TEST_CASE("the gradient of blocks does not need the likelihood any more", "[losses][blocks][quick]") {
  const std::vector<DataBlock> data = {free_block({0.02, -0.03, 1.1, 2}, 50, 1)};
  const auto sky = random_image(block_grid, 1, torch::kFloat64, 5).set_requires_grad(true);
  auto blocks = BlockLikelihood(block_grid, data, BlockLikelihoodOptions().chunk(7));
  const auto expected = torch::autograd::grad({blocks->chi_squared(sky)}, {sky})[0];
  const auto value = blocks->chi_squared(sky);
  blocks = nullptr;
  CHECK(same(torch::autograd::grad({value}, {sky})[0], expected));
}

TEST_CASE("derivatives by the parameters of a block are finite differences", "[losses][blocks][quick]") {
  auto blocks = BlockLikelihood(block_grid, std::vector{free_block({0.02, -0.03, 1.1, 2}, 50, 1)},
                                BlockLikelihoodOptions().transform(NufftOptions{1e-13}));
  const auto sky = random_image(block_grid, 1, torch::kFloat64, 5);
  for (auto& parameter : blocks->named_parameters()) {
    CAPTURE(parameter.key());
    blocks->zero_grad();
    blocks->chi_squared(sky).backward();
    const auto slope = parameter.value().grad().flatten()[0].item<double>();
    const auto value_at = [&](double shift) {
      const torch::NoGradGuard no_grad;
      auto entry = parameter.value().view({-1})[0];
      entry += shift;
      const double value = blocks->chi_squared(sky).item<double>();
      entry -= shift;
      return value;
    };
    CHECK(slope == Approx((value_at(1e-5) - value_at(-1e-5)) / 2e-5).epsilon(1e-6));
  }
}

TEST_CASE("shift, amplitude and weight scale of a block are found together with the image", "[losses][blocks]") {
  const BlockFault fault{.east = 0.03, .north = -0.045, .amplitude = 1.15, .weight_scale = 0.3};
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  auto blocks = BlockLikelihood(
      block_grid, std::vector{DataBlock(faulty_block({}, 500, 1), ChannelMap::cube(1)), free_block(fault, 500, 21)});
  auto model = GriddedNet(GriddedNetOptions(block_grid).dtype(dtype));
  const auto options = TrainOptions().optimizer(OptimizerKind::lbfgs).learning_rate(1).epochs(20);
  const auto result = Trainer(model, Objective(blocks), options).fit();
  CHECK(result.step == StepKind::eager);
  CHECK_THAT(result.step_reason, ContainsSubstring("shift_1"));
  CHECK(blocks->shift(1)[0].item<double>() == Approx(fault.east).margin(4e-4));  // its error is 8e-5
  CHECK(blocks->shift(1)[1].item<double>() == Approx(fault.north).margin(4e-4));
  CHECK(blocks->amplitude(1) == Approx(fault.amplitude).epsilon(4e-3));        // 8e-4
  CHECK(blocks->weight_scale(1) == Approx(fault.weight_scale).epsilon(0.15));  // 0.03
  CHECK(blocks->shift(0).abs().max().item<double>() == 0);
  CHECK(blocks->amplitude(0) == 1);
  CHECK(blocks->weight_scale(0) == 1);
}

TEST_CASE("only blocks that fit a shift keep their baselines beside the data", "[losses][blocks][quick]") {
  const std::int64_t nchan = 3, nvis = 40;
  const auto metres = [](std::uint64_t seed) { return (2 * uniform({nvis}, torch::kFloat64, seed) - 1) * 100; };
  const auto frequencies = torch::tensor(std::vector<double>{2.2e11, 2.3e11, 2.4e11}, torch::kFloat64);
  const Visibilities data(Baselines::in_metres(metres(1), metres(2), frequencies),
                          normal({nchan, nvis}, torch::kComplexDouble, 3), torch::ones({nchan, nvis}, torch::kFloat64));
  const auto likelihood_of = [&](const DataBlock& block) { return BlockLikelihood(block_grid, std::vector{block}); };
  const DataBlock block(data, ChannelMap::cube(nchan));
  const auto fixed = likelihood_of(DataBlock(block).fit_amplitude()), shifted = likelihood_of(DataBlock(block).fit_shift());
  CHECK(fixed->named_buffers().size() == 2);
  CHECK(fixed->named_buffers().contains("data_0"));
  CHECK(fixed->named_buffers().contains("weights_0"));
  CHECK(shifted->named_buffers()["u_0"].sizes() == at::IntArrayRef({nchan, nvis}));
  CHECK(shifted->named_buffers().contains("v_0"));
  CHECK(shifted->memory_bytes() - fixed->memory_bytes() == 2 * nchan * nvis * 8);
}

TEST_CASE("blocks that do not fit together are refused", "[losses][blocks][quick]") {
  const auto data = faulty_block({}, 20, 1);
  CHECK_THROWS_AS(BlockLikelihood(block_grid, std::vector<DataBlock>{}), ValueError);
  CHECK_THROWS_AS(
      BlockLikelihood(block_grid, std::vector{DataBlock(data, ChannelMap::cube(1)), DataBlock(data, ChannelMap{{{0}, {0}}})}),
      ShapeError);
  CHECK_THROWS_AS(BlockLikelihood(GridCoords(5, 16), std::vector{DataBlock(data, ChannelMap::cube(1))}), DataError);
  auto blocks = BlockLikelihood(block_grid, std::vector{DataBlock(data, ChannelMap::cube(1))});
  CHECK_THROWS_AS(blocks->chi_squared(torch::zeros({2, 16, 16}, torch::kFloat64)), ShapeError);
}
