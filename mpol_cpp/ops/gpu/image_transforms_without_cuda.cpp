#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/gpu/gpu_stream.h>
#include <mpol_cpp/ops/gpu/image_transforms.h>

namespace mpol::ops {

std::int64_t shared_memory_of_block(torch::Device device) {
  if (device.is_cpu()) return emulated_shared_memory;
  throw DeviceError(no_cuda);
}

void* current_gpu_stream(torch::Device) { throw DeviceError(no_cuda); }

std::unique_ptr<ImageTransforms> cufft_image_transforms(std::int64_t, std::int64_t, torch::Dtype, torch::Device) {
  throw DeviceError(no_cuda);
}

}  // namespace mpol::ops
