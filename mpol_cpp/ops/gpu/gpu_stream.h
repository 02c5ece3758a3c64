#pragma once

#include <torch/types.h>

namespace mpol::ops {

/// What the emulation of a GPU allows a block: as much shared memory as a GPU of compute capability 9.0.
inline constexpr std::int64_t emulated_shared_memory = 232'448;

/// Bytes of shared memory that a block may ask for; of the CPU, those of the emulation.
/// @throws DeviceError for a GPU in builds without CUDA
std::int64_t shared_memory_of_block(torch::Device device);

/// The cudaStream_t that work on the device goes to now.
/// @throws DeviceError in builds without CUDA
void* current_gpu_stream(torch::Device device);

/// What builds without CUDA say when work for a GPU is asked of them.
inline constexpr const char* no_cuda = "this build of mpol_cpp has no CUDA: configure one with -DMPOL_CUDA=ON";

/// What builds without emulation say when kernels of a GPU are asked of the CPU.
inline constexpr const char* no_emulation =
    "this build of mpol_cpp cannot run kernels of GPUs on the CPU: configure one with -DMPOL_EMULATE_GPU=ON";

}  // namespace mpol::ops
