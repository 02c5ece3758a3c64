// What the emulation cannot show of recordings: failures, streams, other users of the device. Run by hand or by
// scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/rand.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/recorded_work.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/steps/eager_step.h>

#include "compare.h"
#include "required_gpu.h"
#include "placed.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

SmallProblem of_dtype(torch::Dtype dtype) { return {.coords = GridCoords(0.05, 42), .nchan = 2, .dtype = dtype}; }

}  // namespace

TEST_CASE("a recording that fails leaves nothing behind on a GPU", "[gpu][captured]") {
  const auto device = required_gpu();
  const auto x = torch::ones({1000}, device);
  auto y = torch::zeros({1000}, device);
  CHECK_THROWS_AS(RecordedWork(
                      device, [&] { y.add_(x.sum().item<float>()); }, 1),
                  DeviceError);
  y.zero_();
  // Random numbers, memory and other recordings go on as ever.
  CHECK(at::rand({100}, device).max().item<float>() > 0);
  CHECK_NOTHROW(at::accelerator::emptyCache());
  RecordedWork work(
      device, [&] { y.add_((x * 2).exp().log()); }, 2);
  CHECK(work.launches() >= 2);
  y.zero_();
  for (int i = 0; i < 5; ++i) work.replay();
  CHECK(relative_error(y.cpu(), torch::full({1000}, 10.0F)) < 1e-5);
  CHECK_NOTHROW(at::accelerator::emptyCache());
}

TEMPLATE_TEST_CASE("steps recorded under one stream are taken under another", "[gpu][fused][captured]", float, double) {
  const auto device = required_gpu();
  const SameBits same_bits;
  const auto problem = of_dtype(dtype_of<TestType>());
  Placed usual(problem, device), other(problem, device);
  FusedStep usual_step(usual.model.ptr(), usual.objective, TrainOptions(), "tested");
  FusedStep other_step(other.model.ptr(), other.objective, TrainOptions(), "tested");
  for (int i = 0; i < 6; ++i) usual_step.take(0.1);
  const c10::impl::VirtualGuardImpl streams(device.type());
  for (int i = 0; i < 6; ++i) {
    const auto stream = streams.getStreamFromGlobalPool(device);
    {
      const c10::StreamGuard guard(stream);
      other_step.take(0.1);
    }
    streams.synchronizeStream(stream);
  }
  CHECK(torch::equal(other.base(), usual.base()));
}

TEMPLATE_TEST_CASE("a step can be captured after an image was made", "[gpu][captured]", float, double) {
  const auto device = required_gpu();
  const auto problem = of_dtype(dtype_of<TestType>());
  Placed captured(problem, device), eager(problem, device);
  captured.model->make_sky().sum().backward();  // in the default stream, which autograd remembers
  CapturedStep step(captured.model.ptr(), captured.objective, TrainOptions(), "tested");
  EagerStep expected(eager.model.ptr(), eager.objective, TrainOptions(), "tested");
  for (int i = 0; i < 10; ++i) step.take(0.1), expected.take(0.1);
  CHECK(relative_error(captured.base(), eager.base()) < tolerance<TestType>(1e-10, 1e-3));
}

TEMPLATE_TEST_CASE("problems with weights, rates and ends of their own on a GPU are those of the emulation", "[gpu][fused]",
                   float, double) {
  const auto device = required_gpu();
  const auto problem = of_dtype(dtype_of<TestType>());
  auto options = TrainOptions().rate_factors({1, 0.25, 0.5}).stop_relative(1e-3).stop_scope(StopScope::each);
  const auto walk = [&](torch::Device where) {
    Placed placed(problem, where, {}, {3});
    placed.objective = Objective(placed.objective.shared_likelihood(),
                                 {terms::tv_image(2e-3), terms::sparsity(1).with_weights({0, 1e-3, 1e-2})});
    FusedStep step(placed.model.ptr(), placed.objective, options, "tested");
    for (int i = 0; i < 12; ++i) {
      if (i == 5) step.set_stopped({false, true, false});
      step.take(0.1);
    }
    return placed.base();
  };
  CHECK(relative_error(walk(device), walk(torch::kCPU)) < tolerance<TestType>(1e-9, 1e-3));
}

TEMPLATE_TEST_CASE("L-BFGS on a GPU goes on from its state bit for bit, when its history is full", "[gpu][fused]", float,
                   double) {
  const auto device = required_gpu();
  const SameBits same_bits;
  const auto problem = of_dtype(dtype_of<TestType>());
  const auto options = TrainOptions().optimizer(OptimizerKind::lbfgs);
  Placed whole(problem, device), resumed(problem, device);
  FusedStep step(whole.model.ptr(), whole.objective, options, "tested");
  FusedStep again(resumed.model.ptr(), resumed.objective, options, "tested");
  for (int i = 0; i < 15; ++i) step.take(1);  // of up to 20 pairs each
  const auto state = step.state();
  {
    const torch::NoGradGuard no_grad;
    resumed.model->base().copy_(whole.model->base());
  }
  step.take(1);
  again.load_state(state);
  again.take(1);
  CHECK(torch::equal(resumed.base(), whole.base()));
  CHECK(whole.base().isfinite().all().item<bool>());
}
