// What runs on a GPU gives what the CPU gives. Run by hand or by scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <ATen/ops/stack.h>

#include <mpol_cpp/device/move.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/fft/real_fft.h>

#include "compare.h"
#include "required_gpu.h"
#include "temporary_folder.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

SmallProblem problem(torch::Dtype dtype) { return {.coords = GridCoords(0.05, 64), .nchan = 3, .dtype = dtype}; }

struct Fitted {
  Tensor losses, image;
};

Fitted fit(const SmallProblem& problem, const TrainOptions& options) {
  auto model = problem.model();
  // Total variation without its kink: near that, Adam turns one way or the other by the last digit.
  constexpr double epsilon = 1e-2;
  const Objective objective(random_likelihood(problem.likelihood, problem.coords, problem.nchan, problem.dtype),
                            {terms::sparsity(1e-3), terms::tv_image(2e-3, epsilon), terms::tv_channel(1e-3, epsilon),
                             terms::tsv(1e-3), terms::entropy(1e-4), terms::edge_clamp(1e-3)});
  const auto result = Trainer(model, objective, options).fit();
  std::vector<double> totals;
  for (const auto& epoch : result.history) totals.push_back(epoch.total());
  return {torch::tensor(totals, torch::kFloat64), model->make_sky().detach().cpu()};
}

}  // namespace

TEMPLATE_TEST_CASE("operations on a GPU are those on the CPU", "[gpu]", float, double) {
  const auto device = required_gpu();
  const double bound = tolerance<TestType>(1e-13, 1e-5);
  for (const std::int64_t npix : {2, 30, 64, 210}) {
    CAPTURE(npix);
    const auto image = normal({2, npix, npix}, dtype_of<TestType>(), 1);
    CHECK(relative_error(ops::hann(image.to(device)).cpu(), ops::hann(image)) < bound);
    const auto plane = ops::half_plane_fft(image);
    CHECK(relative_error(ops::half_plane_fft(image.to(device)).cpu(), plane) < bound);
    CHECK(relative_error(ops::half_plane_adjoint(plane.to(device)).cpu(), ops::half_plane_adjoint(plane)) < bound);
    const auto gradient = [&](const Tensor& x) {
      return gradient_of([](const Tensor& base) { return ops::half_plane_fft(ops::hann(base)).abs().square(); }, x).cpu();
    };
    CHECK(relative_error(gradient(image.to(device)), gradient(image)) < bound);
  }
}

TEST_CASE("visibilities on a GPU are gridded and written like those on the host", "[gpu]") {
  const auto device = required_gpu();
  const GridCoords coords(0.05, 64);
  const auto u = normal({2000}, torch::kFloat64, 1) * 0.1 * coords.max_uv(),
             v = normal({2000}, torch::kFloat64, 2) * 0.1 * coords.max_uv();
  const Visibilities here(Baselines::in_lambda(u, v), normal({2, 2000}, torch::kComplexFloat, 3), torch::ones({2, 2000}));
  auto there = here;
  move_to(there, device);
  CHECK(device_of(there) == device);
  const auto averaged = [&](const Visibilities& visibilities) {
    return DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  };
  CHECK(same(averaged(there)->visibilities(), averaged(here)->visibilities()));
  CHECK(same(there.block(1, 10, 20).data, here.block(1, 10, 20).data));
  CHECK(same(NormalOperator::of(coords, there, ChannelMap::cube(2)).dirty(),
             NormalOperator::of(coords, here, ChannelMap::cube(2)).dirty()));
}

TEMPLATE_TEST_CASE("a fit on a GPU is that on the CPU", "[gpu]", float, double) {
  const auto device = required_gpu();
  const auto dtype = dtype_of<TestType>();
  const auto options = TrainOptions().epochs(100).learning_rate(0.1).dtype(dtype);
  const auto there = fit(problem(dtype), TrainOptions(options).device(device)), here = fit(problem(dtype), options);
  CHECK(((there.losses - here.losses).abs() <= tolerance<TestType>(1e-10, 1e-5) * here.losses.abs()).all().template item<bool>());
  CHECK(relative_error(there.image, here.image) < tolerance<TestType>(1e-9, 1e-4));
}

TEST_CASE("a fit that moves from GPU to CPU and back midway is the same", "[gpu]") {
  const auto device = required_gpu();
  const TemporaryFolder folder;
  const auto options = TrainOptions().learning_rate(0.1).dtype(torch::kFloat64);
  const auto whole = fit(problem(torch::kFloat64), TrainOptions(options).epochs(60).device(device));
  const auto checkpoint = TrainOptions(options).checkpoint(folder / "checkpoint.safetensors").resume(true);
  fit(problem(torch::kFloat64), TrainOptions(checkpoint).epochs(20).device(device));
  fit(problem(torch::kFloat64), TrainOptions(checkpoint).epochs(40).device(torch::kCPU));
  const auto moved = fit(problem(torch::kFloat64), TrainOptions(checkpoint).epochs(60).device(device));
  CHECK(relative_error(moved.losses, whole.losses) < 1e-10);
  CHECK(relative_error(moved.image, whole.image) < 1e-9);
}

TEST_CASE("the likelihood of a dataset that is on a GPU is there whole", "[gpu]") {
  const auto device = required_gpu();
  const auto own = problem(torch::kFloat64);
  auto dataset = random_dataset(own.coords, own.nchan, 7);
  dataset->to(device);
  auto likelihood = GriddedLikelihood(dataset);
  for (const auto& buffer : likelihood->named_buffers()) {
    CAPTURE(buffer.key());
    CHECK(buffer.value().device() == device);
  }
  auto model = own.model();
  model->to(device);
  CHECK_NOTHROW(Trainer(model, Objective(likelihood.ptr(), {terms::tsv(1e-3)}), TrainOptions().epochs(2)).fit());
}
