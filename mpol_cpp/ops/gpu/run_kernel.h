#pragma once

// A family of kernels is an enum of them, arrays that they are given, bodies, and
//   with_body(kernel, arrays, run)     which calls run(body) with the body of a kernel
// Its .cu file instantiates launch_on_gpu, which ops/gpu/launch_body.h defines. A family of stages has with_stages(kernel,
// arrays, run), which calls run(stages), and a .cu file that instantiates launch_stages_on_gpu of ops/gpu/launch_stages.h.
#include <gpu_emulation.h>  // which CMake writes
#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/gpu/gpu_stream.h>

namespace mpol::ops {

/// Puts a kernel into a stream, a cudaStream_t of the present device. @throws DeviceError when CUDA refuses it
template <typename Kernel, typename Arrays>
void launch_on_gpu(Kernel kernel, const Arrays& arrays, void* stream);
/// Stages, as one kernel, likewise.
template <typename Kernel, typename Arrays>
void launch_stages_on_gpu(Kernel kernel, const Arrays& arrays, void* stream);

/// Puts a kernel into the stream of a GPU that work goes to now; on the CPU it is emulated at once.
/// @throws DeviceError when CUDA refuses it, or when this build has no CUDA, or no emulation
/// @throws std::out_of_range, in the emulation, for an element outside an array
template <typename Kernel, typename Arrays>
void run_kernel(Kernel kernel, const Arrays& arrays, torch::Device device, EmulatedOrder order) {
  if (device.is_cpu()) {
    if constexpr (MPOL_EMULATE_GPU) return emulate(kernel, arrays, order);
    else throw DeviceError(no_emulation);
  }
#ifdef MPOL_WITH_CUDA
  launch_on_gpu(kernel, arrays, current_gpu_stream(device));
#else
  throw DeviceError(no_cuda);
#endif
}

/// All stages of a family in one kernel, likewise. @throws DeviceError also where the GPU cannot let its blocks wait for each
/// other
template <typename Kernel, typename Arrays>
void run_stages(Kernel kernel, const Arrays& arrays, torch::Device device, EmulatedOrder order) {
  if (device.is_cpu()) {
    if constexpr (MPOL_EMULATE_GPU) return emulate_all_stages(kernel, arrays, order);
    else throw DeviceError(no_emulation);
  }
#ifdef MPOL_WITH_CUDA
  launch_stages_on_gpu(kernel, arrays, current_gpu_stream(device));
#else
  throw DeviceError(no_cuda);
#endif
}

}  // namespace mpol::ops
