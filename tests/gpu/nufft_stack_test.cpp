// Stacks of images in the nonuniform transforms on a GPU. Run by hand or by scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <cmath>

#include <ATen/ops/full_like.h>

#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_plan.h>

#include "compare.h"
#include "required_gpu.h"
#include "fourier/edge_baselines.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct StackResults {
  Tensor visibilities, images, gradient, values;
};

/// What one plan gives of five images of two channels.
template <typename T>
StackResults stack_results(torch::Device device, std::int64_t images_at_once) {
  constexpr std::int64_t npix = 48, images = 5, channels = 2;
  const GridCoords coords(0.03, npix);
  const auto points = edge_baselines(coords, 3000, 1);
  const auto u = points.u().contiguous(), v = points.v().contiguous();
  ops::NufftGpuSettings settings;
  settings.transform = {npix, coords.dl(), tolerance<T>(1e-11, 1e-5)};
  settings.device = device, settings.images_at_once = images_at_once;
  ops::NufftGpuPlan<T> plan(settings, u.const_data_ptr<double>(), v.const_data_ptr<double>(), points.nvis(), points.max_abs_u(),
                            points.max_abs_v());
  const auto sky = normal({images, npix, npix}, dtype_of<T>(), 2).to(device);
  const auto samples = normal({images, points.nvis()}, complex_dtype_of<T>(), 3).to(device);
  auto visibilities = at::full_like(samples, std::nan("")), cropped = at::full_like(sky, std::nan(""));
  plan.type2(sky, coords.cell_area(), visibilities);
  plan.type1(samples, coords.cell_area(), cropped);
  const auto data = plan.sorted(
      samples.narrow(0, 0, channels),
      (uniform({channels, points.nvis()}, torch::kFloat64, 4) + 0.5).to(torch::TensorOptions(dtype_of<T>()).device(device)));
  auto gradient = at::full_like(sky, std::nan(""));
  auto values = torch::full({images}, std::nan(""), torch::TensorOptions(torch::kFloat64).device(device));
  plan.fused(sky, coords.cell_area(), data, gradient, values);
  return {visibilities.cpu(), cropped.cpu(), gradient.cpu(), values.cpu()};
}

}  // namespace

TEMPLATE_TEST_CASE("stacks of images on a GPU begin at any channel", "[gpu][nufft]", float, double) {
  const auto device = required_gpu();
  const auto expected = stack_results<TestType>(torch::kCPU, 5);
  const double bound = tolerance<TestType>(1e-12, 1e-5);
  for (const std::int64_t images_at_once : {1, 2, 3, 5}) {  // of two channels: 3 lets stacks begin at the second
    CAPTURE(images_at_once);
    const auto own = stack_results<TestType>(device, images_at_once);
    CHECK(relative_error(own.visibilities, expected.visibilities) < bound);
    CHECK(relative_error(own.images, expected.images) < bound);
    CHECK(relative_error(own.gradient, expected.gradient) < bound);
    CHECK(relative_error(own.values, expected.values) < bound);
  }
}
