// Several fused steps in one kernel of a GPU, whose stages are run by loops on the CPU.
#include "catch.h"

#include <cmath>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pipeline.h>

#include "fused_problem.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using ops::EmulatedOrder;
using ops::FusedGpuPipeline;
using ops::FusedGpuSettings;
using ops::FusedUpdate;
using ops::StepKernels;
using ops::TileKind;

namespace {

FusedGpuSettings steps_settings(const ops::FusedSettings& settings, torch::Dtype dtype, TileKind rows, StepKernels kernels) {
  FusedGpuSettings device{settings};
  device.dtype = dtype, device.tile = rows, device.kernels = kernels;
  device.columns = fused_regularizers();
  return device;
}

/// All that steps leave behind.
struct After {
  Tensor losses, parameters, base, image, first, second, steps, stopped, totals;
};

/// Steps five, one and three at once, the learning rate halved after the first.
After taken(FusedGpuPipeline& pipeline, const Tensor& start) {
  const auto base = start.clone();
  std::vector<Tensor> losses, parameters;
  double rate = 0.2;
  for (const std::int64_t count : {5, 1, 3}) {
    pipeline.set_learning_rate(rate);
    rate = 0.1;
    pipeline.make_room(count);
    pipeline.enqueue(base, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto step = pipeline.next_losses();
      losses.push_back(step.losses.clone());
      parameters.push_back(step.parameters.clone());
    }
  }
  const auto or_nothing = [](const Tensor& moment) { return moment.defined() ? moment : torch::zeros({0}); };
  return {at::stack(losses), at::stack(parameters),        base,
          pipeline.image(),  or_nothing(pipeline.first()), or_nothing(pipeline.second()),
          pipeline.steps(),  pipeline.stopped(),           pipeline.totals()};
}

void check_same(const After& own, const After& expected) {
  CHECK(torch::equal(own.losses, expected.losses));
  CHECK(torch::equal(own.parameters, expected.parameters));
  CHECK(torch::equal(own.base, expected.base));
  CHECK(torch::equal(own.image, expected.image));
  CHECK(torch::equal(own.first, expected.first));
  CHECK(torch::equal(own.second, expected.second));
  CHECK(torch::equal(own.steps, expected.steps));
  CHECK(torch::equal(own.stopped, expected.stopped));
  CHECK(torch::equal(own.totals, expected.totals));
  CHECK(own.base.isfinite().all().item<bool>());
}

}  // namespace

TEMPLATE_TEST_CASE("steps in one emulated kernel are those in several to the bit", "[ops][fused][cuda][quick]", float, double) {
  const std::int64_t npix = GENERATE(6, 30, 64), nchan = GENERATE(1, 3);
  const auto rows = GENERATE(TileKind::two_rows, TileKind::four_rows, TileKind::odd_rows);
  const auto update = GENERATE(FusedUpdate::adam, FusedUpdate::sgd);
  const bool has_terms = GENERATE(true, false);
  CAPTURE(npix, nchan, has_terms);
  auto settings = settings_for(npix, nchan, has_terms ? all_terms() : ops::FusedTerms{});
  settings.problems = npix < 64 ? 2 : 1;
  const Samples samples(npix, nchan, 0.3, 9);
  auto device = steps_settings(settings, dtype_of<TestType>(), rows, StepKernels::several);
  device.update = update, device.momentum = 0.7, device.history_entries = 7;
  const auto start = random_base(device, device.dtype);
  FusedGpuPipeline several(device, samples.cells, samples.data, samples.weights);
  REQUIRE_FALSE(several.one_kernel());
  const auto expected = taken(several, start);
  CHECK_FALSE(torch::equal(expected.base, start));
  device.kernels = StepKernels::one;
  for (const auto order : {EmulatedOrder::ascending, EmulatedOrder::descending}) {
    device.order = order;
    FusedGpuPipeline one(device, samples.cells, samples.data, samples.weights);
    REQUIRE(one.one_kernel());
    check_same(taken(one, start), expected);
  }
}

TEMPLATE_TEST_CASE("problems of one emulated kernel have cells and weights of their own, and stop by themselves",
                   "[ops][fused][cuda][quick]", float, double) {
  auto settings = settings_for(16, 2, all_terms());
  settings.problems = 3;
  auto device = steps_settings(settings, dtype_of<TestType>(), TileKind::two_rows, StepKernels::several);
  device.stop_relative = 0.02, device.stop_window = 2;
  std::vector<ops::ProblemCells> folds;
  for (const std::uint64_t fold : {0, 1, 2}) {
    Samples samples(16, 2, 0.2 + 0.1 * static_cast<double>(fold), 40 + fold);
    if (fold == 1) samples.only([](const Tensor& flat) { return flat < 0; });
    folds.push_back({samples.cells, samples.data, samples.weights});
  }
  auto without = settings.terms;
  for (double& weight : without.weights) weight = 0;
  device.own = {{1e-2, settings.terms}, {3e-2, without}, {2e-3, settings.terms}};
  const auto start = random_base(device, device.dtype);
  FusedGpuPipeline several(device, folds);
  const auto expected = taken(several, start);
  CHECK(expected.stopped.sum().template item<std::int64_t>() > 0);
  CHECK(expected.stopped.sum().template item<std::int64_t>() < 3);
  device.kernels = StepKernels::one;
  FusedGpuPipeline one(device, folds);
  check_same(taken(one, start), expected);
}

TEMPLATE_TEST_CASE("the gradient by one emulated kernel is that by several", "[ops][fused][cuda][quick]", float, double) {
  const Samples samples(18, 3, 0.3, 12);
  auto device = steps_settings(settings_for(18, 3, all_terms()), dtype_of<TestType>(), TileKind::four_rows, StepKernels::several);
  const auto base = random_base(device, device.dtype);
  const auto gradient_by = [&](StepKernels kernels) {
    device.kernels = kernels;
    FusedGpuPipeline pipeline(device, samples.cells, samples.data, samples.weights);
    auto gradient = torch::full_like(base, std::nan(""));
    pipeline.make_room(1);
    pipeline.enqueue_gradient(base, gradient);
    CHECK(pipeline.steps().eq(0).all().item<bool>());
    return std::pair(gradient, pipeline.next_losses().losses);
  };
  const auto several = gradient_by(StepKernels::several), one = gradient_by(StepKernels::one);
  CHECK(torch::equal(one.first, several.first));
  CHECK(torch::equal(one.second, several.second));
  CHECK(one.first.isfinite().all().item().toBool());
}

TEST_CASE("a trial of which kernels are faster leaves no trace in the steps", "[ops][fused][cuda][quick]") {
  const Samples samples(12, 1, 0.4, 13);
  auto device = steps_settings(settings_for(12, 1, all_terms()), torch::kFloat64, TileKind::two_rows, StepKernels::several);
  device.history_entries = 6, device.stop_relative = 1e-3, device.stop_window = 3;  // fewer than a trial takes
  const auto start = random_base(device, device.dtype);
  FusedGpuPipeline several(device, samples.cells, samples.data, samples.weights);
  const auto expected = taken(several, start);
  device.kernels = StepKernels::faster;
  FusedGpuPipeline tried(device, samples.cells, samples.data, samples.weights);
  CHECK_THROWS_AS(tried.next_losses(), ValueError);
  CHECK_THROWS_AS(tried.make_room(7), ValueError);
  check_same(taken(tried, start), expected);
}

TEST_CASE("steps in one kernel are refused for images that it is not made for", "[ops][fused][cuda][quick]") {
  const Samples samples(16, 1, 0.4, 14);
  const auto make = [&](TileKind tile, StepKernels kernels) {
    const auto device = steps_settings(settings_for(16, 1, all_terms()), torch::kFloat32, tile, kernels);
    return FusedGpuPipeline(device, samples.cells, samples.data, samples.weights).one_kernel();
  };
  CHECK_THROWS_AS(make(TileKind::low, StepKernels::one), ValueError);
  CHECK_THROWS_AS(make(TileKind::eight_rows, StepKernels::one), ValueError);
  CHECK_FALSE(make(TileKind::eight_rows, StepKernels::faster));
  CHECK_FALSE(make(TileKind::two_rows, StepKernels::usual));  // the emulation has nothing to gain
  CHECK(make(TileKind::two_rows, StepKernels::one));
}
