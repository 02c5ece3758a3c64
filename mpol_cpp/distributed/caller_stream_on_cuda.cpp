#include <c10/cuda/CUDAStream.h>

#include <mpol_cpp/distributed/caller_stream.h>

namespace mpol::detail {

void* stream_of_caller(torch::Device device) {
  return device.is_cuda() ? c10::cuda::getCurrentCUDAStream(device.index()).stream() : nullptr;
}

}  // namespace mpol::detail
