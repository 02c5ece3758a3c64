#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_plan.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>
#include <ATen/ops/where.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_launch.h>
#include <mpol_cpp/ops/nufft/nufft_window.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t stack_bytes = std::int64_t{1} << 31;  // workspace of images that are transformed together

/// So many that there are several blocks for each processor, and no fewer than one batch.
std::int64_t suitable_task_points(std::int64_t points) { return std::clamp<std::int64_t>(points / 2048, 256, 4096); }

/// In the emulation kernels and transforms must have written what others read.
Tensor nufft_workspace(at::IntArrayRef shape, torch::Dtype dtype, torch::Device device) {
  const auto options = torch::TensorOptions(dtype).device(device);
  return device.is_cpu() ? at::full(shape, std::numeric_limits<double>::quiet_NaN(), options) : at::empty(shape, options);
}

}  // namespace

template <typename T>
struct NufftGpuPlan<T>::Workspace {
  std::int64_t images;
  Tensor plane, half;
  NufftGpuArrays<T> arrays;

  Workspace(const NufftGpuPlan& plan, std::int64_t count) : images(count), arrays(plan.arrays(count)) {
    constexpr auto dtype = c10::CppTypeToScalarType<T>::value;
    const std::int64_t period = plan.shape_.period();
    plane = nufft_workspace({count, period, period}, dtype, plan.settings_.device);
    half = nufft_workspace({count, period, plan.shape_.half()}, c10::toComplexType(dtype), plan.settings_.device);
    arrays.plane = device_array<T>(plane);
    arrays.half = device_array<ComplexValue<T>>(half);
  }

  /// For what tasks grid.
  void add_tiles(const NufftGpuPlan& plan) {
    const std::int64_t side = plan.shape_.side(), tasks = plan.shape_.tasks;
    constexpr auto dtype = c10::CppTypeToScalarType<T>::value;
    tiles_ = nufft_workspace({images, tasks, side, side}, c10::toComplexType(dtype), plan.settings_.device);
    sums_ = nufft_workspace({images, tasks}, torch::kFloat64, plan.settings_.device);
    arrays.tile = device_array<ComplexValue<T>>(tiles_);
    arrays.task_values = device_array<double>(sums_);
  }

 private:
  Tensor tiles_, sums_;
};

template <typename T>
NufftGpuPlan<T>::NufftGpuPlan(const NufftGpuSettings& settings, const double* u, const double* v, std::int64_t count,
                              double max_abs_u, double max_abs_v)
    : settings_(settings) {
  const auto npix = settings.transform.npix;
  constexpr std::int64_t most = 1 << 14;
  if (npix < 2 || npix % 2 != 0 || npix > most) {
    throw ValueError(
        fmt::format("{} x {} pixels: the nonuniform transform on a GPU takes even numbers up to {}", npix, npix, most));
  }
  const torch::NoGradGuard no_grad;
  const int width = nufft_width<T>(settings.transform.tolerance);
  const NufftPoints<T> points(u, v, count, 2.0 * static_cast<double>(npix) * settings.transform.pixel, max_abs_u, max_abs_v,
                              width);
  const auto& extent = points.extent();
  shape_.npix = static_cast<int>(npix);
  shape_.first_u = static_cast<int>(extent.first_u);
  shape_.first_v = static_cast<int>(extent.first_v);
  shape_.tiles_u = static_cast<int>(extent.tiles_u);
  shape_.tiles_v = static_cast<int>(extent.tiles_v);
  shape_.width = width;
  shape_.points = count;
  if (settings_.task_points == 0) settings_.task_points = suitable_task_points(count);

  const NufftWindow window(width);
  const auto tables = std::make_unique<NufftTables<T>>(window.template tables<T>());
  for (int k = 0; k <= nufft_power_degree<T>(width); ++k) power_.insert(power_.end(), tables->power[k], tables->power[k] + width);
  Tensor correction = at::empty({npix}, c10::CppTypeToScalarType<T>::value);
  for (std::int64_t i = 0; i < npix; ++i) {
    const double frequency = static_cast<double>(2 * i - npix) / (4.0 * static_cast<double>(npix));
    correction.mutable_data_ptr<T>()[i] = static_cast<T>(1 / window.transform(frequency));
  }
  correction_ = correction.to(settings_.device);
  upload(points);
}

template <typename T>
void NufftGpuPlan<T>::upload(const NufftPoints<T>& points) {
  const auto count = points.count();
  std::vector<std::int64_t> tile_begin;
  const auto tasks = tasks_of(points, tile_begin);
  shape_.tasks = static_cast<std::int64_t>(tasks.size());
  const auto tile = NufftTile::of(shape_.width, sizeof(T));
  Tensor x = at::empty({count}, c10::CppTypeToScalarType<T>::value), y = at::empty_like(x);
  Tensor cell = at::empty({count}, torch::kUInt8), order = at::empty({count}, torch::kInt32);
  Tensor task = at::empty({static_cast<std::int64_t>(tasks.size() * sizeof(NufftGpuTask))}, torch::kUInt8);
  Tensor begin = at::empty({static_cast<std::int64_t>(tile_begin.size())}, torch::kInt64);
  if (count > 0) {
    const auto sorted = points.points_of(points.tasks().front());
    auto* cells = cell.mutable_data_ptr<std::uint8_t>();
    auto* orders = order.mutable_data_ptr<std::int32_t>();
    std::copy_n(sorted.x, count, x.mutable_data_ptr<T>());
    std::copy_n(sorted.y, count, y.mutable_data_ptr<T>());
    for (std::int64_t i = 0; i < count; ++i) {
      const int u = sorted.cell[i] / tile.distance, v = sorted.cell[i] % tile.distance / 2;
      cells[i] = static_cast<std::uint8_t>(u + NufftTile::cells * v);
      orders[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(points.source(i)) | (points.mirrored(i) ? 1U << 31 : 0U));
    }
    std::memcpy(task.mutable_data_ptr(), tasks.data(), task.nbytes());
  }
  std::copy(tile_begin.begin(), tile_begin.end(), begin.mutable_data_ptr<std::int64_t>());
  x_ = x.to(settings_.device);
  y_ = y.to(settings_.device);
  cell_ = cell.to(settings_.device);
  order_ = order.to(settings_.device);
  task_ = task.to(settings_.device);
  tile_begin_ = begin.to(settings_.device);
}

template <typename T>
std::vector<NufftGpuTask> NufftGpuPlan<T>::tasks_of(const NufftPoints<T>& points, std::vector<std::int64_t>& tile_begin) {
  const auto& tiles = points.tiles();
  const auto first_point = [&](std::size_t t) {
    return t < tiles.size() ? points.tasks()[static_cast<std::size_t>(tiles[t].first_task)].begin : points.count();
  };
  std::vector<NufftGpuTask> tasks;
  tile_begin.assign(static_cast<std::size_t>(shape_.tiles_u * shape_.tiles_v) + 1, 0);
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const auto end = first_point(t + 1), before = static_cast<std::int64_t>(tasks.size());
    for (auto begin = first_point(t); begin < end; begin += settings_.task_points) {
      tasks.push_back({begin, std::min(end, begin + settings_.task_points), tiles[t].u, tiles[t].v});
    }
    tile_begin[static_cast<std::size_t>(tiles[t].u * shape_.tiles_v + tiles[t].v) + 1] =
        static_cast<std::int64_t>(tasks.size()) - before;
  }
  for (std::size_t tile = 1; tile < tile_begin.size(); ++tile) tile_begin[tile] += tile_begin[tile - 1];
  return tasks;
}

template <typename T>
ImageTransforms& NufftGpuPlan<T>::transforms(std::int64_t images) {
  const std::lock_guard lock(mutex_);
  auto& own = transforms_[images];
  if (!own) {
    own = settings_.device.is_cpu()
              ? aten_image_transforms()
              : cufft_image_transforms(images, shape_.period(), c10::CppTypeToScalarType<T>::value, settings_.device);
  }
  return *own;
}

template <typename T>
NufftGpuArrays<T> NufftGpuPlan<T>::arrays(std::int64_t images) const {
  NufftGpuArrays<T> arrays{};
  arrays.shape = shape_;
  arrays.shape.images = static_cast<int>(images);
  arrays.correction = device_array<const T>(correction_);
  arrays.x = device_array<const T>(x_);
  arrays.y = device_array<const T>(y_);
  arrays.cell = device_array<const std::uint8_t>(cell_);
  arrays.order = device_array<const std::int32_t>(order_);
  arrays.task = {static_cast<const NufftGpuTask*>(task_.const_data_ptr()), shape_.tasks};
  arrays.tile_begin = device_array<const std::int64_t>(tile_begin_);
  std::copy(power_.begin(), power_.end(), arrays.power);
  return arrays;
}

template <typename T>
void NufftGpuPlan<T>::launch(NufftGpuKernel kernel, const NufftGpuArrays<T>& arrays) const {
  run_kernel(kernel, arrays, settings_.device, settings_.order);
}

template <typename T>
template <typename Body>
void NufftGpuPlan<T>::each_stack(std::int64_t images, const Body& body) {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(settings_.device);
  const auto fitting = std::max<std::int64_t>(stack_bytes / workspace_bytes(), 1);
  const auto stack = settings_.images_at_once > 0 ? settings_.images_at_once : fitting;
  for (std::int64_t first = 0; first < images; first += stack) {
    Workspace workspace(*this, std::min(stack, images - first));
    body(first, workspace);
  }
}

template <typename T>
void NufftGpuPlan<T>::check(const Tensor& tensor, torch::Dtype dtype, at::IntArrayRef shape, const char* what) const {
  if (tensor.scalar_type() == dtype && tensor.device() == settings_.device && tensor.is_contiguous() && tensor.sizes() == shape) {
    return;
  }
  throw ShapeError(fmt::format("{} {} of shape {} on {}; the nonuniform transform expects contiguous {} of shape ({}) on {}",
                               what, c10::toString(tensor.scalar_type()), tensor.sizes().vec(), tensor.device().str(),
                               c10::toString(dtype), fmt::join(shape, ", "), settings_.device.str()));
}

/// Calls body(workspace) with each stack of images and their visibilities.
template <typename T>
template <typename Body>
void NufftGpuPlan<T>::each_stack_of(const Tensor& images, double scale, const Tensor& visibilities, const Body& body) {
  constexpr auto dtype = c10::CppTypeToScalarType<T>::value;
  const auto count = images.size(0), npix = std::int64_t{shape_.npix};
  check(images, dtype, {count, npix, npix}, "images are");
  check(visibilities, c10::toComplexType(dtype), {count, points()}, "visibilities are");
  each_stack(count, [&](std::int64_t first, Workspace& workspace) {
    workspace.arrays.scale = static_cast<T>(scale);
    workspace.arrays.image = device_array<T>(images.narrow(0, first, workspace.images));
    workspace.arrays.visibilities = device_array<ComplexValue<T>>(visibilities.narrow(0, first, workspace.images));
    body(workspace);
  });
}

template <typename T>
void NufftGpuPlan<T>::type2(const Tensor& images, double scale, const Tensor& visibilities) {
  each_stack_of(images, scale, visibilities, [&](Workspace& workspace) {
    launch(NufftGpuKernel::pad, workspace.arrays);
    transforms(workspace.images).forward(workspace.plane, workspace.half);
    launch(NufftGpuKernel::degrid, workspace.arrays);
  });
}

template <typename T>
void NufftGpuPlan<T>::type1(const Tensor& visibilities, double scale, const Tensor& images) {
  each_stack_of(images, scale, visibilities, [&](Workspace& workspace) {
    workspace.add_tiles(*this);
    launch(NufftGpuKernel::grid, workspace.arrays);
    launch(NufftGpuKernel::gather, workspace.arrays);
    transforms(workspace.images).inverse(workspace.half, workspace.plane);
    launch(NufftGpuKernel::crop, workspace.arrays);
  });
}

template <typename T>
NufftGpuData NufftGpuPlan<T>::sorted(const Tensor& visibilities, const Tensor& weights) const {
  const torch::NoGradGuard no_grad;
  constexpr auto dtype = c10::CppTypeToScalarType<T>::value;
  const auto order = order_.to(torch::kInt64), source = order.bitwise_and(0x7fffffff);
  const auto values = visibilities.to(settings_.device).index_select(1, source);
  const auto weight = weights.to(settings_.device).index_select(1, source);
  const auto imag = at::imag(values.resolve_conj());
  return {at::real(values.resolve_conj()).to(dtype).contiguous(), at::where(order < 0, -imag, imag).to(dtype).contiguous(),
          weight.to(dtype).contiguous()};
}

template <typename T>
void NufftGpuPlan<T>::fused(const Tensor& images, double scale, const NufftGpuData& data, const Tensor& gradient,
                            const Tensor& values) {
  constexpr auto dtype = c10::CppTypeToScalarType<T>::value;
  const auto count = images.size(0), npix = std::int64_t{shape_.npix}, channels = data.weight.size(0);
  check(images, dtype, {count, npix, npix}, "images are");
  check(gradient, dtype, {count, npix, npix}, "the gradient is");
  check(values, torch::kFloat64, {count}, "values are");
  for (const auto* part : {&data.real, &data.imag, &data.weight}) check(*part, dtype, {channels, points()}, "data are");
  each_stack(count, [&](std::int64_t first, Workspace& workspace) {
    workspace.add_tiles(*this);
    auto& arrays = workspace.arrays;
    arrays.shape.channels = static_cast<int>(channels);
    arrays.shape.first_channel = static_cast<int>(first % channels);
    arrays.real = device_array<const T>(data.real);
    arrays.imag = device_array<const T>(data.imag);
    arrays.weight = device_array<const T>(data.weight);
    arrays.scale = static_cast<T>(scale);
    arrays.image = device_array<T>(images.narrow(0, first, workspace.images));
    launch(NufftGpuKernel::pad, arrays);
    transforms(workspace.images).forward(workspace.plane, workspace.half);
    launch(NufftGpuKernel::fused, arrays);
    arrays.values = device_array<double>(values.narrow(0, first, workspace.images));
    launch(NufftGpuKernel::sum, arrays);
    launch(NufftGpuKernel::gather, arrays);
    transforms(workspace.images).inverse(workspace.half, workspace.plane);
    arrays.scale = static_cast<T>(2 * scale);
    arrays.image = device_array<T>(gradient.narrow(0, first, workspace.images));
    launch(NufftGpuKernel::crop, arrays);
  });
}

template <typename T>
void NufftGpuPlan<T>::keep_for(c10::Stream stream) const {
  for (const auto& tensor : {x_, y_, cell_, order_, task_, tile_begin_, correction_}) tensor.record_stream(stream);
}

template <typename T>
std::int64_t NufftGpuPlan<T>::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto* tensor : {&x_, &y_, &cell_, &order_, &task_, &tile_begin_, &correction_}) bytes += tensor->nbytes();
  const std::lock_guard lock(mutex_);
  auto of_transforms = std::int64_t{0};
  for (const auto& [images, transforms] : transforms_) of_transforms += transforms->memory_bytes();
  return static_cast<std::int64_t>(bytes) + of_transforms;
}

template <typename T>
std::int64_t NufftGpuPlan<T>::workspace_bytes() const {
  const std::int64_t period = shape_.period(), side = shape_.side(), real = sizeof(T);
  return real * (period * period + 2 * shape_.half_plane() + 2 * shape_.tasks * side * side);
}

template class NufftGpuPlan<float>;
template class NufftGpuPlan<double>;

}  // namespace mpol::ops
