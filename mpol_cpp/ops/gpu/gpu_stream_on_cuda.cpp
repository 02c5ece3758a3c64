#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <mpol_cpp/ops/gpu/gpu_stream.h>

namespace mpol::ops {

std::int64_t shared_memory_of_block(torch::Device device) {
  if (device.is_cpu()) return emulated_shared_memory;
  int bytes = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index()));
  return bytes;
}

void* current_gpu_stream(torch::Device device) { return c10::cuda::getCurrentCUDAStream(device.index()).stream(); }

}  // namespace mpol::ops
