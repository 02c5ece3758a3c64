// A GPU that is not the current one. Run by hand or by scripts/gpu_check on a machine with two; with one they are left out and
// say so.
#include "catch.h"

#include <ATen/ops/stack.h>

#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/fused_step.h>

#include "compare.h"
#include "required_gpu.h"
#include "fourier/edge_baselines.h"
#include "placed.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Whether a second GPU is there; says it loudly when not. Fails without any.
bool has_second_gpu() {
  required_gpu();
  if (cuda_device_count() > 1) return true;
  WARN("LEFT OUT: this machine has one GPU, the test needs two");
  return false;
}

template <typename OwnStep>
std::pair<Tensor, Tensor> walk_on(torch::Device device, torch::Dtype dtype, const TrainOptions& options) {
  Placed placed({.coords = GridCoords(0.05, 42), .nchan = 2, .dtype = dtype}, device);
  OwnStep step(placed.model.ptr(), placed.objective, options, "tested");
  std::vector<Tensor> losses(10);
  for (auto& loss : losses) loss = step.take(options.optimizer() == OptimizerKind::lbfgs ? 1 : 0.1).losses;
  CHECK(losses.front().device() == device);
  return {at::stack(losses).cpu(), placed.base()};
}

}  // namespace

TEMPLATE_TEST_CASE("steps on a GPU that is not the current one are those on the first", "[gpu][gpu2][fused][captured]", float,
                   double) {
  if (!has_second_gpu()) return;
  const auto dtype = dtype_of<TestType>();
  const auto agree = [&](const auto& walk) {
    const auto [losses, base] = walk(torch::Device(torch::kCUDA, 1));
    const auto [expected_losses, expected_base] = walk(torch::Device(torch::kCUDA, 0));
    CHECK(relative_error(losses, expected_losses) < tolerance<TestType>(1e-10, 1e-4));
    CHECK(relative_error(base, expected_base) < tolerance<TestType>(1e-7, 1e-2));
  };
  agree([&](torch::Device device) { return walk_on<FusedStep>(device, dtype, TrainOptions()); });
  agree([&](torch::Device device) { return walk_on<FusedStep>(device, dtype, TrainOptions().optimizer(OptimizerKind::lbfgs)); });
  agree([&](torch::Device device) { return walk_on<CapturedStep>(device, dtype, TrainOptions()); });
}

TEMPLATE_TEST_CASE("nonuniform transforms on a GPU that is not the current one are those on the first", "[gpu][gpu2][nufft]",
                   float, double) {
  if (!has_second_gpu()) return;
  const GridCoords coords(0.03, 64);
  const auto baselines = edge_baselines(coords, 2000, 1);
  const auto nufft = Nufft(coords, baselines, 2);
  const auto sky = normal({2, 64, 64}, dtype_of<TestType>(), 2);
  const auto there = nufft->forward(sky.to(torch::Device(torch::kCUDA, 1)));
  CHECK(there.device() == torch::Device(torch::kCUDA, 1));
  CHECK(relative_error(there.cpu(), nufft->forward(sky.to(torch::Device(torch::kCUDA, 0))).cpu()) <
        tolerance<TestType>(1e-12, 1e-5));
}
