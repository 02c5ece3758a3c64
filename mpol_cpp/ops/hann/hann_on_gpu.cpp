#include <mpol_cpp/ops/hann/hann_on_gpu.h>

#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/hann/hann_gpu_body.h>

namespace mpol::ops {
namespace {

template <typename T>
void convolve(const Tensor& images, const Tensor& out, EmulatedOrder order) {
  const auto rows = images.size(-2), columns = images.size(-1);
  if (images.numel() == 0) return;
  const HannArrays<T> arrays{images.numel() / (rows * columns), static_cast<std::int32_t>(rows),
                             static_cast<std::int32_t>(columns), device_array<const T>(images), device_array<T>(out)};
  run_kernel(HannKernel::convolve, arrays, images.device(), order);
}

}  // namespace

void hann_on_gpu(const Tensor& images, Tensor& out, EmulatedOrder order) {
  const c10::DeviceGuard guard(images.device());
  const auto input = images.contiguous();
  if (images.scalar_type() == torch::kFloat64) convolve<double>(input, out, order);
  else convolve<float>(input, out, order);
}

}  // namespace mpol::ops
