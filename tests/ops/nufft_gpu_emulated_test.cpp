// The kernels of the nonuniform transform on a GPU, run by loops on the CPU.
#include "catch.h"

#include <cmath>
#include <complex>
#include <memory>
#include <vector>

#include <ATen/ops/conj.h>
#include <ATen/ops/full.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_check.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_plan.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "fourier/edge_baselines.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using ops::EmulatedOrder;
using ops::NufftGpuSettings;

namespace {

GridCoords grid_of(std::int64_t npix) { return {0.03, npix}; }

template <typename T>
std::vector<double> emulated_tolerances() {
  if constexpr (std::is_same_v<T, float>) return {1e-3, 1e-4, 1e-5, 1e-6};  // each has a window of its own
  return {1e-5, 1e-6, 1e-8, 1e-11, 1e-12, 1e-13};
}

/// The plans of a GPU and of the CPU for some points.
template <typename T>
struct Transforms {
  GridCoords coords;
  Baselines baselines;
  double tolerance;
  std::unique_ptr<ops::NufftGpuPlan<T>> device;
  std::unique_ptr<ops::NufftPlan<T>> cpu;

  Transforms(const GridCoords& grid, const Baselines& points, double error, NufftGpuSettings settings = {})
      : coords(grid), baselines(points), tolerance(error) {
    const auto u = points.u().contiguous(), v = points.v().contiguous();
    settings.transform = {grid.npix(), grid.dl(), error};
    device = std::make_unique<ops::NufftGpuPlan<T>>(settings, u.const_data_ptr<double>(), v.const_data_ptr<double>(),
                                                    points.nvis(), points.max_abs_u(), points.max_abs_v());
    cpu = std::make_unique<ops::NufftPlan<T>>(settings.transform, u.const_data_ptr<double>(), v.const_data_ptr<double>(),
                                              points.nvis(), points.max_abs_u(), points.max_abs_v());
  }

  Tensor images(std::int64_t count, std::uint64_t seed) const {
    return normal({count, coords.npix(), coords.npix()}, dtype_of<T>(), seed);
  }
  Tensor visibilities(std::int64_t count, std::uint64_t seed) const {
    return normal({count, baselines.nvis()}, complex_dtype_of<T>(), seed);
  }

  Tensor type2(const Tensor& sky) const {
    auto result = at::full({sky.size(0), baselines.nvis()}, std::nan(""), complex_dtype_of<T>());
    device->type2(sky, coords.cell_area(), result);
    return result;
  }
  Tensor type1(const Tensor& values) const {
    auto result = at::full({values.size(0), coords.npix(), coords.npix()}, std::nan(""), dtype_of<T>());
    device->type1(values, coords.cell_area(), result);
    return result;
  }
  Tensor type1_of_cpu(const Tensor& values) const {
    auto result = at::zeros({values.size(0), coords.npix(), coords.npix()}, dtype_of<T>());
    for (std::int64_t i = 0; i < values.size(0); ++i) {
      cpu->type1(reinterpret_cast<const std::complex<T>*>(values[i].const_data_ptr<c10::complex<T>>()), coords.cell_area(),
                 result[i].template mutable_data_ptr<T>(), Accumulate::overwrite);
    }
    return result;
  }

  struct Fused {
    Tensor values, gradient;
  };
  /// Image i sees the data of channel i % channels.
  Fused fused(const Tensor& sky, const Tensor& data, const Tensor& weights) const {
    Fused result{at::full({sky.size(0)}, std::nan(""), torch::kFloat64), at::full_like(sky, std::nan(""))};
    device->fused(sky, coords.cell_area(), device->sorted(data, weights), result.gradient, result.values);
    return result;
  }
};

double norm_ratio(const Tensor& value, const Tensor& reference) {
  const auto difference = value.to(reference.scalar_type()) - reference;
  return std::sqrt(inner_product(difference, difference) / inner_product(reference, reference));
}

/// Points that are everywhere, at edges, and many in one cell.
Baselines points_of(const GridCoords& coords, std::int64_t random, std::int64_t crowded) {
  const auto spread = edge_baselines(coords, random, 1);
  if (coords.npix() < 4) return spread;  // too small a plane for a crowd
  const auto dense = crowd(coords, crowded, 3);
  return Baselines::in_lambda(at::cat({spread.u(), dense.u()}), at::cat({spread.v(), dense.v()}));
}

Baselines equal_points(const GridCoords& coords, std::int64_t count) {
  return Baselines::in_lambda(at::full({count}, 1.3 * coords.du(), torch::kFloat64),
                              at::full({count}, -2.2 * coords.du(), torch::kFloat64));
}

}  // namespace

TEMPLATE_TEST_CASE("emulated GPU kernels agree with direct sums to the tolerance", "[ops][nufft][cuda]", float, double) {
  const std::int64_t npix = GENERATE(2, 4, 6, 8, 30, 64);
  for (const double tolerance : emulated_tolerances<TestType>()) {
    CAPTURE(npix, tolerance);
    const Transforms<TestType> both(grid_of(npix), points_of(grid_of(npix), 150, 40), tolerance);
    const auto image = both.images(1, 5);
    const auto expected = direct_visibilities(image.to(torch::kFloat64), both.coords, both.baselines, 1);
    // Every pixel of the smallest images lies at their border, where the error is several times that of the norm.
    const double bound = (npix < 8 ? 10 : 3) * tolerance + 1e-14;
    CHECK(norm_ratio(both.type2(image), expected) < bound);
    const auto values = both.visibilities(1, 6);
    // That it is the adjoint says the next test; here that it is the one of the CPU.
    CHECK(norm_ratio(both.type1(values), both.type1_of_cpu(values).to(torch::kFloat64)) < bound);
  }
}

TEMPLATE_TEST_CASE("emulated GPU kernels of type 1 and type 2 are adjoint", "[ops][nufft][cuda][quick]", float, double) {
  const std::int64_t npix = GENERATE(2, 4, 6, 8, 30);
  for (const double tolerance : emulated_tolerances<TestType>()) {
    CAPTURE(npix, tolerance);
    const Transforms<TestType> both(grid_of(npix), points_of(grid_of(npix), 200, 60), tolerance);
    const auto x = both.images(2, 7);
    const auto y = both.visibilities(2, 8);
    CHECK(adjoint_error(both.type2(x), y, x, both.type1(y)) < mpol::testing::tolerance<TestType>(1e-13, 1e-6));
  }
}

TEMPLATE_TEST_CASE("the emulated fused kernel is a transform, a residual and the adjoint", "[ops][nufft][cuda][quick]", float,
                   double) {
  const double tolerance = GENERATE(1e-4, 1e-6);
  // Several problems of two channels; stacks that begin at either channel.
  NufftGpuSettings settings;
  settings.images_at_once = GENERATE(0, 3);
  const Transforms<TestType> both(grid_of(30), points_of(grid_of(30), 300, 70), tolerance, settings);
  const auto sky = both.images(6, 9);
  const auto data = both.visibilities(2, 10);
  const auto weights = uniform({2, both.baselines.nvis()}, dtype_of<TestType>(), 11) + 0.5;
  const auto own = both.fused(sky, data, weights);
  const auto residual = both.type2(sky) - data.repeat({3, 1});
  const auto weighted = residual * weights.repeat({3, 1});
  const auto expected = (at::real(residual * residual.conj()).to(torch::kFloat64) * weights.repeat({3, 1})).sum(1);
  CHECK(relative_error(own.values, expected) < mpol::testing::tolerance<TestType>(1e-13, 1e-6));
  CHECK(relative_error(own.gradient, 2 * both.type1(weighted)) < mpol::testing::tolerance<TestType>(1e-13, 2e-6));
}

TEMPLATE_TEST_CASE("no order of blocks and threads changes emulated nonuniform transforms", "[ops][nufft][cuda][quick]", float,
                   double) {
  for (const double tolerance : {1e-4, 1e-6}) {
    NufftGpuSettings settings;
    const auto coords = grid_of(30);
    const auto points = points_of(coords, 400, 700);
    settings.task_points = 97;  // several tasks in a tile
    const Transforms<TestType> ascending(coords, points, tolerance, settings);
    settings.order = EmulatedOrder::descending;
    const Transforms<TestType> descending(coords, points, tolerance, settings);
    const auto sky = ascending.images(2, 12);
    const auto data = ascending.visibilities(2, 13);
    const auto weights = uniform({2, points.nvis()}, dtype_of<TestType>(), 14);
    CHECK(same(ascending.type2(sky), descending.type2(sky)));
    CHECK(same(ascending.type1(data), descending.type1(data)));
    const auto one = ascending.fused(sky, data, weights), other = descending.fused(sky, data, weights);
    CHECK(same(one.values, other.values));
    CHECK(same(one.gradient, other.gradient));
  }
}

TEMPLATE_TEST_CASE("the sizes of tasks and stacks do not change emulated nonuniform transforms", "[ops][nufft][cuda][quick]",
                   float, double) {
  const auto coords = grid_of(16);
  const auto points = points_of(coords, 200, 300);
  const Transforms<TestType> usual(coords, points, 1e-6);
  const auto sky = usual.images(3, 15);
  const auto data = usual.visibilities(3, 16);
  for (const std::int64_t task_points : {1, 64, 65}) {
    NufftGpuSettings settings;
    settings.task_points = task_points;
    const Transforms<TestType> cut(coords, points, 1e-6, settings);
    CHECK(same(cut.type2(sky), usual.type2(sky)));
    CHECK(relative_error(cut.type1(data), usual.type1(data)) < mpol::testing::tolerance<TestType>(1e-14, 2e-6));
  }
  NufftGpuSettings settings;
  settings.images_at_once = 2;
  const Transforms<TestType> stacked(coords, points, 1e-6, settings);
  // LibTorch's transforms of several images differ from those of one by rounding.
  CHECK(relative_error(stacked.type2(sky), usual.type2(sky)) < mpol::testing::tolerance<TestType>(1e-14, 1e-6));
  CHECK(relative_error(stacked.type1(data), usual.type1(data)) < mpol::testing::tolerance<TestType>(1e-14, 1e-6));
}

TEMPLATE_TEST_CASE("images that share a visit of the points on an emulated GPU are those of each alone",
                   "[ops][nufft][cuda][quick]", float, double) {
  const auto coords = grid_of(16);
  const auto points = points_of(coords, 150, 100);
  const double bound = mpol::testing::tolerance<TestType>(1e-14, 1e-6);
  for (const double tolerance : emulated_tolerances<TestType>()) {
    CAPTURE(tolerance);
    NufftGpuSettings settings;
    settings.task_points = 190;
    const Transforms<TestType> together(coords, points, tolerance, settings);
    settings.images_at_once = 1;
    const Transforms<TestType> alone(coords, points, tolerance, settings);
    const std::int64_t count = 5;  // whole visits and one that is not
    const auto sky = alone.images(count, 21);
    const auto data = alone.visibilities(count, 22);
    const auto weights = uniform({count, points.nvis()}, dtype_of<TestType>(), 23) + 0.5;
    CHECK(relative_error(together.type2(sky), alone.type2(sky)) < bound);
    CHECK(relative_error(together.type1(data), alone.type1(data)) < bound);
    const auto own = together.fused(sky, data, weights), expected = alone.fused(sky, data, weights);
    CHECK(relative_error(own.values, expected.values) < bound);
    CHECK(relative_error(own.gradient, expected.gradient) < bound);
  }
}

TEMPLATE_TEST_CASE("no, one and equal points on an emulated GPU", "[ops][nufft][cuda][quick]", float, double) {
  const auto coords = grid_of(16);
  const Transforms<TestType> one(coords, equal_points(coords, 1), 1e-6);
  const auto sky = one.images(1, 17);
  const auto single = one.type2(sky);
  const auto expected = direct_visibilities(sky.to(torch::kFloat64), coords, one.baselines, 1);
  CHECK(relative_error(single, expected) < 5e-6);
  for (const std::int64_t count : {2, 64, 257, 5000}) {
    const Transforms<TestType> many(coords, equal_points(coords, count), 1e-6);
    CHECK(same(many.type2(sky), single.expand({1, count}).contiguous()));
    const auto ones = at::full({1, count}, 1, complex_dtype_of<TestType>());
    CHECK(relative_error(many.type1(ones), one.type1(ones.narrow(1, 0, 1)) * count) < 5e-6);
  }
  NufftGpuSettings settings;
  settings.transform = {16, coords.dl(), 1e-6};
  ops::NufftGpuPlan<TestType> none(settings, nullptr, nullptr, 0, 0, 0);
  const auto nothing = at::zeros({1, 0}, complex_dtype_of<TestType>());
  auto empty = at::full({1, 16, 16}, std::nan(""), dtype_of<TestType>());
  none.type2(sky, 1, nothing);
  none.type1(nothing, 1, empty);
  CHECK(same(empty, at::zeros_like(empty)));
  auto value = at::full({1}, std::nan(""), torch::kFloat64);
  none.fused(sky, 1, none.sorted(nothing, at::zeros({1, 0}, dtype_of<TestType>())), empty, value);
  CHECK(value.item<double>() == 0);
}

TEMPLATE_TEST_CASE("what compares a device with the CPU finds no difference in the emulation", "[ops][nufft][cuda][quick]", float,
                   double) {
  for (const double tolerance : {1e-3, 1e-6}) {
    CHECK(ops::nufft_device_error<TestType>(torch::kCPU, tolerance) < 3 * tolerance);
    CHECK_NOTHROW(ops::check_nufft_device<TestType>(torch::kCPU, tolerance));
  }
}

TEST_CASE("the transform on a GPU refuses tensors that do not fit it", "[ops][nufft][cuda][quick]") {
  const auto coords = grid_of(8);
  const Transforms<float> both(coords, equal_points(coords, 3), 1e-6);
  CHECK_NOTHROW(both.type2(both.images(2, 18)));
  CHECK_THROWS_AS(both.type2(both.images(2, 18).to(torch::kFloat64)), ShapeError);
  CHECK_THROWS_AS(both.type2(both.images(2, 18).transpose(1, 2)), ShapeError);
  CHECK_THROWS_AS(both.type2(at::zeros({1, 8, 10})), ShapeError);
  CHECK_THROWS_AS(both.type1(at::zeros({1, 2}, torch::kComplexFloat)), ShapeError);
  NufftGpuSettings settings;
  settings.transform = {1 << 15, coords.dl(), 1e-6};
  CHECK_THROWS_AS(ops::NufftGpuPlan<float>(settings, nullptr, nullptr, 0, 0, 0), ValueError);
}
