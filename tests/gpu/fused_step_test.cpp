// The fused and the captured step on a GPU against their emulation and against eager steps. Run by hand or by
// scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <functional>

#include <ATen/ops/stack.h>

#include <mpol_cpp/train/steps/make_step.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/batched_likelihood.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pipeline.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/steps/eager_step.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "required_gpu.h"
#include "ops/fused_problem.h"
#include "placed.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Gradient {
  Tensor losses, gradient, image;
};

/// By the kernels of a device: a GPU, or the emulation on the CPU.
Gradient gradient_on(torch::Device device, const ops::FusedSettings& settings, const Samples& samples, const Tensor& base,
                     std::optional<ops::TileKind> tile) {
  ops::FusedGpuSettings own{settings};
  own.columns = fused_regularizers();
  own.dtype = base.scalar_type(), own.device = device, own.tile = tile;
  own.kernels = ops::StepKernels::several;  // not as is faster: bits are compared
  ops::FusedGpuPipeline pipeline(own, samples.cells, samples.data, samples.weights);
  const auto there = base.to(device);
  auto gradient = torch::full_like(there, std::nan(""));
  pipeline.make_room(1);
  pipeline.enqueue_gradient(there, gradient);
  return {pipeline.next_losses().losses.cpu(), gradient.cpu(), pipeline.image().cpu()};
}

/// Losses, gradient and image of a GPU are those of the emulation, and the same each time.
template <typename T>
void check_against_emulation(torch::Device device, std::int64_t npix, std::int64_t nchan, ops::TileKind tile) {
  auto settings = settings_for(npix, nchan, all_terms());
  settings.problems = npix < 64 ? 2 : 1;
  const Samples samples(npix, nchan, 0.3, 5);
  const auto base = random_base(settings, dtype_of<T>());
  const auto there = gradient_on(device, settings, samples, base, tile);
  const auto here = gradient_on(torch::kCPU, settings, samples, base, tile);
  CHECK(relative_error(there.losses, here.losses) < tolerance<T>(1e-12, 1e-5));
  CHECK(relative_error(there.gradient, here.gradient) < tolerance<T>(1e-12, 1e-5));
  CHECK(relative_error(there.image, here.image) < tolerance<T>(1e-14, 1e-6));
  const auto again = gradient_on(device, settings, samples, base, tile);
  CHECK(torch::equal(again.losses, there.losses));
  CHECK(torch::equal(again.gradient, there.gradient));
}

SmallProblem of_size(std::int64_t npix, torch::Dtype dtype) {
  return {.coords = GridCoords(0.05, npix), .nchan = 3, .dtype = dtype};
}

}  // namespace

TEMPLATE_TEST_CASE("fused kernels on a GPU give what their emulation gives", "[gpu][fused]", float, double) {
  const auto device = required_gpu();
  const std::int64_t npix = GENERATE(2, 4, 6, 30, 34, 42, 64, 106, 210), nchan = GENERATE(1, 3);
  const auto tile = GENERATE(ops::TileKind::low, ops::TileKind::high);
  CAPTURE(npix, nchan);
  check_against_emulation<TestType>(device, npix, nchan, tile);
}

TEMPLATE_TEST_CASE("fused kernels that transform rows by themselves give on a GPU what their emulation gives",
                   "[gpu][fused][small]", float, double) {
  const auto device = required_gpu();
  const std::int64_t npix = GENERATE(2, 6, 30, 64, 100), nchan = GENERATE(1, 3);
  const auto tile = GENERATE(ops::TileKind::two_rows, ops::TileKind::four_rows, ops::TileKind::eight_rows);
  CAPTURE(npix, nchan);
  check_against_emulation<TestType>(device, npix, nchan, tile);
}

TEMPLATE_TEST_CASE("rows and tiles give the same on a GPU at every size", "[gpu][fused]", float, double) {
  const auto device = required_gpu();
  const std::int64_t npix = GENERATE(180, 256, 512, 1024, 2048);
  const auto settings = settings_for(npix, 1, all_terms());
  const Samples samples(npix, 1, 0.3, 5);
  const auto base = random_base(settings, dtype_of<TestType>());
  const auto rows = gradient_on(device, settings, samples, base, {}),
             tiles = gradient_on(device, settings, samples, base, ops::TileKind::high);
  CHECK(relative_error(rows.losses, tiles.losses) < tolerance<TestType>(1e-12, 1e-5));
  CHECK(relative_error(rows.gradient, tiles.gradient) < tolerance<TestType>(1e-12, 1e-5));
}

TEMPLATE_TEST_CASE("steps in one kernel on a GPU are those in several", "[gpu][fused][small]", float, double) {
  const auto device = required_gpu();
  const std::int64_t npix = GENERATE(18, 64, 180), nchan = GENERATE(1, 3);
  const auto rows = GENERATE(ops::TileKind::two_rows, ops::TileKind::four_rows);
  auto settings = settings_for(npix, nchan, all_terms());
  settings.problems = npix < 64 ? 2 : 1;
  const Samples samples(npix, nchan, 0.3, 5);
  const auto start = random_base(settings, dtype_of<TestType>());
  const auto steps_by = [&](ops::StepKernels kernels) {
    ops::FusedGpuSettings own{settings};
    own.columns = fused_regularizers();
    own.dtype = start.scalar_type(), own.device = device, own.tile = rows, own.kernels = kernels;
    ops::FusedGpuPipeline pipeline(own, samples.cells, samples.data, samples.weights);
    const auto base = start.to(device);
    pipeline.set_learning_rate(0.1);
    for (int i = 0; i < 3; ++i) {
      pipeline.make_room(5);
      pipeline.enqueue(base, 5);
    }
    for (int i = 0; i < 14; ++i) pipeline.next_losses();
    return std::pair(pipeline.next_losses().losses.cpu(), base.cpu());
  };
  const auto several = steps_by(ops::StepKernels::several), one = steps_by(ops::StepKernels::one),
             faster = steps_by(ops::StepKernels::faster);
  for (const auto& own : {one, faster}) {
    CHECK(relative_error(own.first, several.first) < tolerance<TestType>(1e-10, 1e-4));
    CHECK(relative_error(own.second, several.second) < tolerance<TestType>(1e-8, 1e-3));
  }
}

TEMPLATE_TEST_CASE("fused kernels on a GPU are right without any data", "[gpu][fused][small]", float, double) {
  const auto device = required_gpu();
  Samples samples(40, 2, 0.3, 8);
  samples.only([](const Tensor& flat) { return flat < 0; });
  const auto settings = settings_for(40, 2, all_terms());
  const auto base = random_base(settings, dtype_of<TestType>());
  const auto there = gradient_on(device, settings, samples, base, {}),
             here = gradient_on(torch::kCPU, settings, samples, base, {});
  CHECK(relative_error(there.losses, here.losses) < tolerance<TestType>(1e-12, 1e-5));
  CHECK(relative_error(there.gradient, here.gradient) < tolerance<TestType>(1e-12, 1e-5));
}

TEMPLATE_TEST_CASE("problems with cells of their own on a GPU are what their emulation gives", "[gpu][fused][small]", float,
                   double) {
  const auto device = required_gpu();
  const auto base = (normal({2, 1, 34, 34}, torch::kFloat64, 17) * 3 - 1).to(dtype_of<TestType>());
  const Samples one(34, 1, 0.3, 5), other(34, 1, 0.1, 6);
  const std::vector<ops::ProblemCells> folds = {{one.cells, one.data, one.weights}, {other.cells, other.data, other.weights}};
  const auto losses_on = [&](torch::Device where) {
    ops::FusedGpuSettings settings;
    settings.npix = 34, settings.problems = 2, settings.own = {{1e-2, {}}, {3e-2, {}}};
    settings.dtype = base.scalar_type(), settings.device = where;
    ops::FusedGpuPipeline pipeline(settings, folds);
    const auto there = base.to(where);
    auto gradient = torch::full_like(there, std::nan(""));
    pipeline.make_room(1);
    pipeline.enqueue_gradient(there, gradient);
    return std::pair(pipeline.next_losses().losses.cpu(), gradient.cpu());
  };
  const auto [there, gradient] = losses_on(device);
  const auto [here, expected] = losses_on(torch::kCPU);
  CHECK(relative_error(there, here) < tolerance<TestType>(1e-12, 1e-5));
  CHECK(relative_error(gradient, expected) < tolerance<TestType>(1e-12, 1e-5));
}

TEMPLATE_TEST_CASE("fused and captured steps on a GPU follow eager ones", "[gpu][fused][captured]", float, double) {
  const auto device = required_gpu();
  const auto dtype = dtype_of<TestType>();
  const std::int64_t npix = GENERATE(12, 42, 128);
  const auto options = GENERATE(TrainOptions(), TrainOptions().optimizer(OptimizerKind::sgd),
                                TrainOptions().optimizer(OptimizerKind::sgd).momentum(0.8));
  const double rate = options.optimizer() == OptimizerKind::adam ? 0.1 : 1.0;
  CAPTURE(npix, to_string(options.optimizer()), options.momentum());
  const auto problem = of_size(npix, dtype);
  Placed eager(problem, device), fused(problem, device), captured(problem, device);
  EagerStep eager_step(eager.model.ptr(), eager.objective, options, "tested");
  FusedStep fused_step(fused.model.ptr(), fused.objective, options, "tested");
  CapturedStep captured_step(captured.model.ptr(), captured.objective, options, "tested");
  CHECK(fused_step.disagreement().empty());
  const auto expected = path_of(*eager.model, eager_step, rate, 100);
  for (const auto& own :
       {path_of(*fused.model, fused_step, rate, 100, &expected), path_of(*captured.model, captured_step, rate, 100, &expected)}) {
    CHECK(relative_error(own.losses, expected.losses) < tolerance<TestType>(1e-10, 1e-4));
    CHECK(relative_error(own.sums, expected.sums) < tolerance<TestType>(1e-8, 1e-2));
    CHECK(relative_error(own.bases, expected.bases) < tolerance<TestType>(1e-7, 1e-2));
  }
}

TEMPLATE_TEST_CASE("problems with data of their own are fitted on a GPU as on the CPU", "[gpu][fused]", float, double) {
  const auto device = required_gpu();
  const auto fit_on = [&](torch::Device where, StepKind step) {
    const auto problem = of_size(34, dtype_of<TestType>());
    auto model = problem.model({2});
    const auto data = [&](std::uint64_t seed) {
      return std::shared_ptr<Likelihood>(GriddedLikelihood(random_dataset(problem.coords, problem.nchan, seed)).ptr());
    };
    const Objective objective(BatchedLikelihood(std::vector{data(7), data(17)}), {terms::sparsity(1e-3), terms::tv_image(2e-3)});
    const auto result = Trainer(model, objective, TrainOptions().device(where).learning_rate(0.1).epochs(40).step(step)).fit();
    return std::pair(result.loss.total(), model->base().detach().cpu());
  };
  const auto [expected, base] = fit_on(torch::kCPU, StepKind::fused);
  for (const auto step : {StepKind::fused, StepKind::eager}) {
    const auto [loss, own] = fit_on(device, step);
    CHECK(loss == Approx(expected).epsilon(tolerance<TestType>(1e-10, 1e-4)));
    CHECK(relative_error(own, base) < tolerance<TestType>(1e-7, 1e-2));
  }
}

TEST_CASE("fused L-BFGS on a GPU follows eager L-BFGS", "[gpu][fused]") {
  const auto device = required_gpu();
  const auto problem = of_size(30, torch::kFloat64);
  const auto options = TrainOptions().optimizer(OptimizerKind::lbfgs);
  Placed eager(problem, device), fused(problem, device);
  EagerStep eager_step(eager.model.ptr(), eager.objective, options, "tested");
  FusedStep fused_step(fused.model.ptr(), fused.objective, options, "tested");
  const auto own = path_of(*fused.model, fused_step, 1, 5), expected = path_of(*eager.model, eager_step, 1, 5);
  CHECK(relative_error(own.losses, expected.losses) < 1e-8);
  CHECK(fused_step.launches() > 0);
}

TEMPLATE_TEST_CASE("several fused steps in a graph are bitwise the same steps", "[gpu][fused]", float, double) {
  const auto device = required_gpu();
  const SameBits same_bits;
  const auto problem = of_size(64, dtype_of<TestType>());
  Placed once(problem, device, {}, {2}), many(problem, device, {}, {2});
  FusedStep one(once.model.ptr(), once.objective, TrainOptions(), "tested");
  FusedStep several(many.model.ptr(), many.objective, TrainOptions(), "tested");
  std::vector<Tensor> expected, losses;
  for (int i = 0; i < 203; ++i) expected.push_back(one.take(0.1).losses);
  for (const auto& report : several.take_several(0.1, 203)) losses.push_back(report.losses);
  CHECK(torch::equal(at::stack(losses), at::stack(expected)));
  CHECK(torch::equal(many.model->base(), once.model->base()));
}

TEST_CASE("the trainer takes the fused step on a GPU, and the eager one where it does not apply", "[gpu][fused]") {
  const auto device = required_gpu();
  const auto problem = of_size(30, torch::kFloat32);
  const auto options = TrainOptions().device(device).dtype(torch::kFloat32);
  const auto fused = make_step(Placed(problem, device).model.ptr(), Placed(problem, device).objective, options);
  CAPTURE(fused->reason());
  CHECK(fused->kind() == StepKind::fused);
  const Placed other(problem, device, {terms::uv_sparsity(1e-6, 1e5)});
  const auto eager = make_step(other.model.ptr(), other.objective, options);
  CHECK(eager->kind() == StepKind::eager);
  CHECK_THAT(eager->reason(), ContainsSubstring("uv_sparsity"));
}

TEST_CASE("a step that waits for the device cannot be captured and says so", "[gpu][captured]") {
  const auto device = required_gpu();
  const auto problem = of_size(12, torch::kFloat32);
  const Placed placed(problem, device, {Term("waiting", 1.0, [](const ModelOutput& out) {
                        const auto sum = out.sky.sum({-3, -2, -1});
                        return sum * (sum.item<float>() > 0 ? 1.0 : 2.0);
                      })});
  CapturedStep step(placed.model.ptr(), placed.objective, TrainOptions(), "tested");
  CHECK_THROWS_AS(step.take(0.1), DeviceError);
}
