#include "catch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/unique_dim.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/visibility_batches.h>
#include <mpol_cpp/datasets/visibility_sampler.h>
#include <mpol_cpp/device/device_iterator.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords uv_grid(0.05, 64);

/// Many short baselines and few long ones, as arrays have them.
Baselines random_uv(std::int64_t nvis) {
  const auto radius = 0.9 * uv_grid.max_uv() * uniform({nvis}, torch::kFloat64, 1).pow(2);
  const auto angle = 6.283185307179586 * uniform({nvis}, torch::kFloat64, 2);
  return Baselines::in_lambda(radius * angle.cos(), radius * angle.sin());
}

VisibilitySampler make_sampler(const Baselines& baselines, Sampling sampling, std::int64_t batch_size, std::uint64_t seed = 0) {
  return VisibilitySampler(uv_grid, baselines, VisibilitySamplerOptions().sampling(sampling).batch_size(batch_size).seed(seed));
}

/// uv cells that a batch touches.
std::int64_t cells_touched(const Baselines& baselines, const Tensor& batch) {
  const auto [u, v] = baselines.channel(0);
  const auto cell = (u.index_select(0, batch) / uv_grid.du()).round() * 1e4 + (v.index_select(0, batch) / uv_grid.du()).round();
  return std::get<0>(at::unique_dim(cell, 0)).numel();
}

double mean_length(const Baselines& baselines, const Tensor& batch) {
  const auto [u, v] = baselines.channel(0);
  return (u * u + v * v).sqrt().index_select(0, batch).mean().item<double>();
}

}  // namespace

TEST_CASE("the batches of an epoch are disjoint and complete, whatever divides the samples", "[datasets][quick]") {
  const auto sampling = GENERATE(Sampling::random, Sampling::compact, Sampling::uniform);
  const auto [nvis, batch_size] =
      GENERATE(table<std::int64_t, std::int64_t>({{1000, 100}, {1003, 100}, {1, 5}, {7, 7}, {97, 1}, {5, 2}}));
  INFO(nvis << " in " << batch_size);
  const auto sampler = make_sampler(random_uv(nvis), sampling, batch_size);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto batches = sampler.epoch(epoch);
    CHECK(static_cast<std::int64_t>(batches.size()) == sampler.batches());
    for (const auto& batch : batches) {
      CHECK(batch.numel() <= batch_size);
      CHECK(batch.numel() >= nvis / sampler.batches());
    }
    CHECK(same(std::get<0>(at::cat(batches).sort()), at::arange(nvis)));
  }
}

TEST_CASE("batches depend on seed and epoch, and on nothing else", "[datasets][quick]") {
  const auto sampling = GENERATE(Sampling::random, Sampling::compact, Sampling::uniform);
  const auto baselines = random_uv(500);
  const auto first = [&](std::uint64_t seed, std::int64_t epoch) {
    return at::cat(make_sampler(baselines, sampling, 50, seed).epoch(epoch));
  };
  torch::rand({3});  // the global generator has no say
  CHECK(same(first(1, 4), first(1, 4)));
  CHECK_FALSE(same(first(1, 4), first(1, 5)));
  CHECK_FALSE(same(first(1, 4), first(2, 4)));
}

TEST_CASE("compact batches touch fewer cells, uniform ones resemble the whole", "[datasets][quick]") {
  const auto baselines = random_uv(4000);
  const auto all = at::arange(4000);
  const auto worst_length = [&](Sampling sampling) {
    double worst = 0;
    for (const auto& batch : make_sampler(baselines, sampling, 100).epoch(0)) {
      worst = std::max(worst, std::abs(mean_length(baselines, batch) / mean_length(baselines, all) - 1));
    }
    return worst;
  };
  const auto cells = [&](Sampling sampling) {
    std::int64_t sum = 0;
    for (const auto& batch : make_sampler(baselines, sampling, 100).epoch(0)) sum += cells_touched(baselines, batch);
    return sum;
  };
  CHECK(2 * cells(Sampling::compact) < cells(Sampling::random));
  CHECK(worst_length(Sampling::uniform) < 0.03);
  CHECK(worst_length(Sampling::uniform) < worst_length(Sampling::random));
}

TEST_CASE("a sampler refuses empty batches", "[datasets][quick]") {
  CHECK_THROWS_AS(make_sampler(random_uv(5), Sampling::random, 0), ValueError);
}

TEST_CASE("the batches of visibilities are those of the sampler, taken out one by one", "[datasets][quick]") {
  const auto baselines = random_uv(100);
  const auto data = at::complex(uniform({2, 100}, torch::kFloat64, 3), uniform({2, 100}, torch::kFloat64, 4));
  const Visibilities all(baselines, data, uniform({2, 100}, torch::kFloat64, 5) + 1);
  const auto sampler = make_sampler(baselines, Sampling::uniform, 30);
  for (const std::int64_t epoch : {0, 3}) {
    const auto samples = sampler.epoch(epoch);
    const VisibilityBatches batches(all, sampler, epoch);
    REQUIRE(batches.size() == samples.size());
    std::size_t number = 0;
    for (const auto& batch : DeviceIterator(batches, torch::kCPU)) {
      const auto& own = samples[number++];
      CHECK(same(batch.data(), all.data().index_select(1, own)));
      CHECK(same(batch.weights(), all.weights().index_select(1, own)));
      CHECK(same(batch.baselines().channel(1).first, baselines.channel(1).first.index_select(0, own)));
    }
    CHECK(number == samples.size());
  }
}
