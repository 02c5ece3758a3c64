#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "catch.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/analysis/channel_plan.h>
#include <mpol_cpp/analysis/deproject.h>
#include <mpol_cpp/analysis/matching/polar_shapes.h>
#include <mpol_cpp/analysis/matching/template_matching.h>
#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A source that counts how many channels are alive, now and at most, and how often it was asked.
struct CountedSource {
  Tensor cube;
  std::atomic<std::int64_t> alive{0}, most{0}, calls{0};

  ChannelSource source() {
    const double bytes = static_cast<double>(cube[0].nbytes());
    return {cube.size(0), bytes, [this](std::int64_t begin, std::int64_t end) {
              ++calls;
              const auto now = alive += end - begin;
              most = std::max(most.load(), now);
              const auto copy = cube.slice(0, begin, end).clone();
              return at::from_blob(
                  copy.mutable_data_ptr(), copy.sizes(), [this, copy, count = end - begin](void*) { alive -= count; },
                  copy.options());
            }};
  }
};

Tensor twice(const Tensor& block) { return 2 * block; }

}  // namespace

TEMPLATE_TEST_CASE("read, deproject, polar, match by blocks equal the whole, on one device and on two", "[analysis][plan]", float,
                   double) {
  const auto dtype = c10::CppTypeToScalarType<TestType>::value;
  const GridCoords coords(0.05, 32);
  const DiscGeometry geometry{.inclination = 0.6, .position_angle = 0.4, .offset_east = 0.02, .offset_north = -0.03};
  const PolarIntegrator integrator(
      coords, PolarIntegratorOptions().radii(even_edges(0, 0.7, 10)).azimuths(even_edges(0, 2 * units::pi, 36)));
  const PolarTemplates templates(uniform({5, 10, 36}, torch::kFloat64, 8));
  CountedSource counted{uniform({11, 32, 32}, dtype, 3)};
  const auto matched = [&](const std::vector<Tensor>& maps) {
    const auto matches = match_templates(maps[0], templates, MatchOptions().n_best(2));
    return std::vector<Tensor>{maps[0], matches.index, matches.angle, matches.score};
  };
  const auto polar = [&](const Tensor& sky) { return integrator.integrate(sky).mean; };
  const auto whole = matched({polar(deproject(counted.cube, coords, geometry))});
  const double bytes = static_cast<double>(counted.cube[0].nbytes());

  ChannelPlan plan(counted.source());
  plan.then("deproject", bytes, [&](const Tensor& sky) { return deproject(sky, coords, geometry); })
      .then("polar", 0, polar)
      .then("match", 0, matched);
  CHECK(counted.calls == 0);  // nothing moves before run()
  for (const auto& devices : {std::vector<torch::Device>{torch::kCPU}, std::vector<torch::Device>{torch::kCPU, torch::kCPU}}) {
    const auto count = static_cast<double>(devices.size());
    for (const double channels : {1.0, 3.0, 100.0}) {
      const auto options = ChannelPlanOptions().devices(devices).memory_budget((2 * count + 2) * bytes * channels);
      INFO(devices.size() << " devices, blocks of " << plan.channels_of_block(options));
      std::vector<std::vector<Tensor>> parts(4);
      std::int64_t next = 0;
      counted.most = 0;
      plan.run(
          [&](const ChannelPlan::Block& block) {
            CHECK(block.begin == next);
            next = block.end;
            for (std::size_t i = 0; i < 4; ++i) parts[i].push_back(block.results[i]);
          },
          options);
      CHECK(next == 11);
      CHECK(counted.alive == 0);
      CHECK(static_cast<double>(counted.most) <= (count + 2) * channels);
      CHECK(at::equal(at::cat(parts[0]), whole[0]));
      CHECK(at::equal(at::cat(parts[1]), whole[1]));
      CHECK(at::allclose(at::cat(parts[2]), whole[2]));
      CHECK(at::allclose(at::cat(parts[3]), whole[3]));
    }
  }
}

TEST_CASE("what fails in a plan ends it on every device", "[analysis][plan]") {
  CountedSource counted{uniform({9, 4}, torch::kFloat64, 3)};
  const auto options = ChannelPlanOptions().devices({torch::kCPU, torch::kCPU}).memory_budget(6 * 4 * 8);
  const auto nothing = [](const ChannelPlan::Block&) {};
  const auto fails = [](const Tensor& block) -> Tensor {
    if (block.numel() > 0) throw std::runtime_error("no such luck");
    return block;
  };
  CHECK_THROWS_WITH(ChannelPlan(counted.source()).then("fails", 32, fails).run(nothing, options), "no such luck");
  CHECK_THROWS_WITH(ChannelPlan(counted.source())
                        .then("twice", 32, twice)
                        .run(
                            [](const ChannelPlan::Block& block) {
                              if (block.begin >= 4) throw std::runtime_error("disk full");
                            },
                            options),
                    "disk full");
  auto source = counted.source();
  source.read = [](std::int64_t begin, std::int64_t) -> Tensor {
    if (begin >= 3) throw FileError("damaged");
    return uniform({1, 4}, torch::kFloat64, 1);
  };
  CHECK_THROWS_AS(ChannelPlan(source).run(nothing, ChannelPlanOptions().memory_budget(3 * 32)), FileError);
  const auto sums = [](const Tensor& block) { return block.sum().reshape({1}).expand({3}); };
  CHECK_THROWS_AS(ChannelPlan(counted.source()).then("sums", 0, sums).run(nothing), ShapeError);
  CHECK(counted.alive == 0);
}

TEST_CASE("a plan refuses a budget of less than a channel, and a source of none", "[analysis][plan]") {
  CountedSource counted{uniform({9, 4}, torch::kFloat64, 3)};
  ChannelPlan plan(counted.source());
  plan.then("twice", 32, twice);
  CHECK(plan.bytes_of_channel() == 64);
  CHECK(plan.channels_of_block(ChannelPlanOptions().memory_budget(128)) == 1);
  CHECK_THROWS_WITH(plan.channels_of_block(ChannelPlanOptions().memory_budget(127)), Catch::Contains("128"));
  CHECK_THROWS_AS(plan.then("less", -1, twice), ValueError);
  auto source = counted.source();
  source.nchan = 0;
  CHECK_THROWS_AS(ChannelPlan(source), ValueError);
  CHECK(counted.calls == 0);
}
