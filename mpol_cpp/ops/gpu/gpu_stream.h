#pragma once

#include <torch/types.h>

namespace mpol::ops {

/// The cudaStream_t that work on the device goes to now.
/// @throws DeviceError in builds without CUDA
void* current_gpu_stream(torch::Device device);

/// What builds without CUDA say when work for a GPU is asked of them.
inline constexpr const char* no_cuda = "this build of mpol_cpp has no CUDA: configure one with -DMPOL_CUDA=ON";

}  // namespace mpol::ops
