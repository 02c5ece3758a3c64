#pragma once

#include <torch/types.h>

namespace mpol::detail {

/// The CUDA stream (cudaStream_t) to which the caller's work on a device goes now; null for a device without one, and in builds
/// without CUDA.
void* stream_of_caller(torch::Device device);

}  // namespace mpol::detail
