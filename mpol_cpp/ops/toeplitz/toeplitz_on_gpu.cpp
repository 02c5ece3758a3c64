#include <mpol_cpp/ops/toeplitz/toeplitz_on_gpu.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/line_roots.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_gpu_bodies.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 29;  // of half planes at once

/// line_roots(), made once for each device: a recording can make none. Never destroyed: at the end of the process CUDA
/// may be gone before.
Tensor roots_of(std::int64_t length, torch::Device device) {
  struct Tables {
    std::mutex mutex;
    std::map<std::pair<std::int64_t, std::string>, Tensor> made;
  };
  static auto& tables = *new Tables;
  const std::lock_guard lock(tables.mutex);
  auto& table = tables.made[{length, device.str()}];
  if (!table.defined()) table = line_roots(length).to(device);
  return table;
}

/// The product of images (n, npix, npix), or of a quadratic form its gradient and what its value is made of.
template <typename T>
void run(const Tensor& images, const Tensor& kernel, const Tensor& linear, const Tensor& result, const Tensor& sums,
         Accumulate accumulate, EmulatedOrder order) {
  const auto count = images.size(0), npix = images.size(2), plane = npix * (npix + 1);
  const auto device = images.device();
  const auto at_once = std::clamp<std::int64_t>(most_bytes / (16 * plane), 1, std::max<std::int64_t>(count, 1));
  const auto roots = roots_of(2 * npix, device);
  const auto spectrum =
      at::empty({std::min(at_once, count), npix + 1, npix}, torch::TensorOptions(torch::kComplexDouble).device(device));
  ToeplitzArrays<T> arrays{};
  arrays.npix = static_cast<std::int32_t>(npix);
  arrays.nchan = static_cast<std::int32_t>(kernel.size(0));
  arrays.quadratic = linear.defined();
  arrays.add = accumulate == Accumulate::add;
  arrays.plan = LinePlan::of(2 * npix);
  arrays.roots = device_array<const ComplexValue<double>>(roots);
  arrays.spectrum = device_array<ComplexValue<double>>(spectrum);
  arrays.kernel = device_array<const double>(kernel);
  arrays.linear = device_array<const double>(linear);
  arrays.sums = device_array<double>(sums);
  for (std::int64_t first = 0; first < count; first += at_once) {
    const auto number = std::min(at_once, count - first);
    arrays.first = first;
    arrays.images = static_cast<std::int32_t>(number);
    arrays.x = device_array<const T>(images.narrow(0, first, number));
    arrays.result = device_array<T>(result.narrow(0, first, number));
    for (const auto which : {ToeplitzKernel::rows, ToeplitzKernel::columns, ToeplitzKernel::back})
      run_kernel(which, arrays, device, order);
  }
}

void run(const Tensor& images, const Tensor& kernel, const Tensor& linear, const Tensor& result, const Tensor& sums,
         Accumulate accumulate, EmulatedOrder order) {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(images.device());
  const auto npix = images.size(-1);
  const auto flat = images.contiguous().view({-1, npix, npix}), flat_result = result.view({-1, npix, npix});
  const auto own_kernel = kernel.contiguous();
  if (images.scalar_type() == torch::kFloat32) run<float>(flat, own_kernel, linear, flat_result, sums, accumulate, order);
  else run<double>(flat, own_kernel, linear, flat_result, sums, accumulate, order);
}

}  // namespace

bool ToeplitzOnGpu::has(std::int64_t npix, torch::Device device) { return fits(npix, shared_memory_of_block(device)); }

bool ToeplitzOnGpu::fits(std::int64_t npix, std::int64_t shared_memory) {
  if (npix < 2 || npix % 2 != 0 || !LinePlan::exists(2 * npix)) return false;
  constexpr std::int64_t of_sums = 4096;  // beside the lines
  return LineTransform<double>::bytes(LinePlan::of(2 * npix), 1) + of_sums <= shared_memory;
}

Tensor ToeplitzOnGpu::product(const Tensor& images, const Tensor& kernel, EmulatedOrder order) {
  auto product = at::empty_like(images, at::MemoryFormat::Contiguous);
  run(images, kernel, {}, product, {}, Accumulate::overwrite, order);
  return product;
}

Tensor ToeplitzOnGpu::quadratic(const Tensor& images, const Tensor& kernel, const Tensor& linear, const Tensor& constant,
                                Tensor& gradient, Accumulate accumulate, EmulatedOrder order) {
  const torch::NoGradGuard no_grad;
  const auto npix = images.size(-1), count = images.numel() / (npix * npix);
  const auto sums = at::empty({count, npix / 2}, constant.options());
  run(images, kernel, linear.contiguous(), gradient, sums, accumulate, order);
  return sums.sum(1).view(images.sizes().slice(0, images.dim() - 2)) + constant;
}

}  // namespace mpol::ops
