#include <c10/cuda/CUDAStream.h>

#include <mpol_cpp/ops/gpu/gpu_stream.h>

namespace mpol::ops {

void* current_gpu_stream(torch::Device device) { return c10::cuda::getCurrentCUDAStream(device.index()).stream(); }

}  // namespace mpol::ops
