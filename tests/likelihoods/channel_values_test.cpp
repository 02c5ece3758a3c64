// chi^2 channel by channel (Likelihood::channel_values_and_gradient), for solvers that minimize channels by themselves.
#include "catch.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/components/point_likelihood.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/batched_likelihood.h>
#include <mpol_cpp/likelihoods/chunked_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/likelihoods/shared/shared_likelihood.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords channel_grid(0.05, 16);
constexpr std::int64_t channel_count = 3;

/// Of four data channels the second and the third are of one image channel.
ChannelMap joined_channels() { return {{{0}, {1, 2}, {3}}}; }

GriddedDataset cells_of_channel(const GriddedDataset& cube, std::int64_t channel) {
  constexpr std::int64_t plane = 16 * 16;
  const auto own = (at::floor_divide(cube->cells(), plane) == channel).nonzero().squeeze(1);
  return GriddedDataset(channel_grid, 1, cube->cells().index_select(0, own) - channel * plane,
                        cube->visibilities().index_select(0, own), cube->weights().index_select(0, own));
}

/// The likelihood of that name, or of one of its image channels.
std::shared_ptr<Likelihood> likelihood_named(const std::string& name, std::optional<std::int64_t> channel = {}) {
  const auto data = random_visibilities(channel_grid, channel_count + 1, 7);
  auto channels = joined_channels();
  if (channel) channels = ChannelMap{{channels.sources[static_cast<std::size_t>(*channel)]}};
  const auto loose = [&](const Visibilities& own) { return LooseLikelihood(channel_grid, own, channels).ptr(); };
  if (name == "gridded") {
    const auto cells = random_dataset(channel_grid, channel_count, 7);
    return GriddedLikelihood(channel ? cells_of_channel(cells, *channel) : cells).ptr();
  }
  if (name == "exact") return ExactLikelihood(channel_grid, data, channels).ptr();
  if (name == "loose with shared baselines") {
    const Baselines baselines = Baselines::in_lambda(data.baselines().u()[0], data.baselines().v()[0]);
    return loose({baselines, data.data(), data.weights()});
  }
  if (name == "chunks") {
    return ChunkedLikelihood(channel_grid, data, channels, ChunkedLikelihoodOptions().chunk(300)).ptr();
  }
  if (name == "shared") {
    const auto devices =
        std::make_shared<DeviceGroup>(std::vector<torch::Device>{torch::kCPU, torch::kCPU}, std::vector<double>{1, 0.5});
    return SharedLikelihood(devices, channel_grid, data, channels,
                            [&](const Visibilities& share, torch::Device) -> std::shared_ptr<Likelihood> { return loose(share); })
        .ptr();
  }
  if (name == "points") {
    const std::vector<PointComponent> sources = {{.east = 0.1, .north = 0, .flux = {}}};
    return PointLikelihood(ExactLikelihood(channel_grid, data, channels).ptr(), data, channels, sources).ptr();
  }
  return loose(data);
}

}  // namespace

TEMPLATE_TEST_CASE("values of channels are those of likelihoods of one channel, and add up", "[losses][quick]", float, double) {
  const std::string name = GENERATE("gridded", "exact", "loose", "loose with shared baselines", "chunks", "shared", "points");
  CAPTURE(name);
  const auto likelihood = likelihood_named(name), other = likelihood_named(name);
  REQUIRE(likelihood->tells_channels());
  const auto bound = tolerance<TestType>(1e-9, 1e-5);
  for (const auto& shape :
       {std::vector<std::int64_t>{channel_count, 16, 16}, std::vector<std::int64_t>{2, channel_count, 16, 16}}) {
    const auto sky = uniform(shape, torch::kFloat64, 5).to(dtype_of<TestType>());
    auto gradient = at::full_like(sky, 7), added = at::full_like(sky, 0.5), of_whole = at::full_like(sky, 7);
    const auto values = likelihood->channel_values_and_gradient(sky, gradient, Accumulate::overwrite);
    const auto value = other->value_and_gradient(sky, of_whole, Accumulate::overwrite);
    CHECK(values.scalar_type() == torch::kFloat64);
    REQUIRE(values.sizes() == sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)));
    CHECK(relative_error(values.sum(-1), value) < 1e-14);
    CHECK(same(gradient, of_whole));
    likelihood->channel_values_and_gradient(sky, added, Accumulate::add);
    CHECK(relative_error(added - 0.5, gradient) < tolerance<TestType>(1e-12, 1e-4));
    for (std::int64_t channel = 0; channel < channel_count; ++channel) {
      const auto alone = likelihood_named(name, channel);
      const auto own_sky = sky.narrow(-3, channel, 1).contiguous();
      auto own = at::zeros_like(own_sky);
      CHECK(relative_error(values.select(-1, channel), alone->value_and_gradient(own_sky, own, Accumulate::overwrite)) < bound);
      CHECK(relative_error(gradient.narrow(-3, channel, 1), own) < bound);
    }
  }
}

TEST_CASE("a batch tells the channels of each problem where all of its likelihoods do", "[losses][quick]") {
  const auto exact = likelihood_named("exact"), gridded = likelihood_named("gridded");
  BatchedLikelihood batch(std::vector{exact, gridded});
  REQUIRE(batch->tells_channels());
  const auto sky = uniform({2, channel_count, 16, 16}, torch::kFloat64, 5);
  auto gradient = at::zeros_like(sky), own = at::zeros_like(sky);
  const auto values = batch->channel_values_and_gradient(sky, gradient, Accumulate::overwrite);
  const std::vector parts = {exact, gridded};
  for (std::int64_t k = 0; k < 2; ++k) {
    auto slope = own[k];
    CHECK(same(values[k], parts[static_cast<std::size_t>(k)]->channel_values_and_gradient(sky[k], slope, Accumulate::overwrite)));
  }
  CHECK(same(gradient, own));
  CHECK(values.sizes() == at::IntArrayRef{2, channel_count});
  const auto noise = NoiseLikelihood(channel_grid, random_visibilities(channel_grid, channel_count, 7),
                                     ChannelMap::cube(channel_count), NoiseModel::student(4));
  CHECK_FALSE(BatchedLikelihood(std::vector<std::shared_ptr<Likelihood>>{exact, noise.ptr()})->tells_channels());
}

TEST_CASE("a likelihood that tells no channels refuses, and one that derives from another tells none", "[losses][quick]") {
  const auto data = random_visibilities(channel_grid, 1, 7);
  auto noise = NoiseLikelihood(channel_grid, data, ChannelMap::cube(1), NoiseModel::student(4));
  const auto sky = uniform({1, 16, 16}, torch::kFloat64, 5);
  auto gradient = at::zeros_like(sky);
  CHECK_FALSE(noise->tells_channels());
  CHECK_THROWS_AS(noise->channel_values_and_gradient(sky, gradient, Accumulate::overwrite), ValueError);
  struct Other : ExactLikelihoodImpl {
    using ExactLikelihoodImpl::ExactLikelihoodImpl;
  };
  CHECK_FALSE(Other(channel_grid, data, ChannelMap::cube(1)).tells_channels());
  CHECK(ExactLikelihood(channel_grid, data, ChannelMap::cube(1))->tells_channels());
}
