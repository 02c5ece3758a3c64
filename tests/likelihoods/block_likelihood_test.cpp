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
                      NufftOptions{1e-12});
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
    auto blocks = BlockLikelihood(block_grid, data, NufftOptions{1e-13}, samples_at_once);
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
  auto chunks = BlockLikelihood(block_grid, data, NufftOptions{1e-13}, 7);
  CHECK_THROWS_WITH(torch::autograd::grad({chunks->chi_squared(sky).sum()}, {sky}, {}, true, /*create_graph=*/true),
                    ContainsSubstring("second derivative"));
  CHECK_THROWS_AS(BlockLikelihood(block_grid, data, NufftOptions{}, -1), ValueError);
}

TEST_CASE("derivatives by the parameters of a block are finite differences", "[losses][blocks][quick]") {
  auto blocks = BlockLikelihood(block_grid, std::vector{free_block({0.02, -0.03, 1.1, 2}, 50, 1)}, NufftOptions{1e-13});
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
