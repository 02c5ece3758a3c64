#pragma once

// The kernels of the nonuniform transform, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/fused_cuda_emulated_block.h>
#include <mpol_cpp/ops/nufft_cuda_planes.h>
#include <mpol_cpp/ops/nufft_cuda_points.h>

namespace mpol::ops {

/// Calls run(body) with the body over points for a width of the window; nothing for a width that no tolerance has.
template <NufftWork work, typename T, typename Run>
void with_nufft_width(const NufftDeviceArrays<T>& arrays, const Run& run) {
  const int width = arrays.shape.width;
  if constexpr (sizeof(T) == 4) {
    if (width == 4) return run(NufftTaskBody<T, 4, work>{arrays});
    if (width == 5) return run(NufftTaskBody<T, 5, work>{arrays});
    if (width == 6) return run(NufftTaskBody<T, 6, work>{arrays});
    if (width == 7) return run(NufftTaskBody<T, 7, work>{arrays});
  } else {
    if (width == 6) return run(NufftTaskBody<T, 6, work>{arrays});
    if (width == 9) return run(NufftTaskBody<T, 9, work>{arrays});
    if (width == 12) return run(NufftTaskBody<T, 12, work>{arrays});
    if (width == 14) return run(NufftTaskBody<T, 14, work>{arrays});
    if (width == 15) return run(NufftTaskBody<T, 15, work>{arrays});
  }
}

/// Calls run(body) with the body of a kernel.
template <typename T, typename Run>
void with_nufft_body(NufftDeviceKernel kernel, const NufftDeviceArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case NufftDeviceKernel::pad:
      return run(NufftPadBody<T>{{arrays}});
    case NufftDeviceKernel::crop:
      return run(NufftCropBody<T>{{arrays}});
    case NufftDeviceKernel::degrid:
      return with_nufft_width<NufftWork::degrid>(arrays, run);
    case NufftDeviceKernel::grid:
      return with_nufft_width<NufftWork::grid>(arrays, run);
    case NufftDeviceKernel::fused:
      return with_nufft_width<NufftWork::fused>(arrays, run);
    case NufftDeviceKernel::gather:
      return run(NufftGatherBody<T>{{arrays}});
    case NufftDeviceKernel::sum:
      return run(NufftSumBody<T>{arrays});
  }
}

/// Puts a kernel into a stream, a cudaStream_t of the present device.
/// @throws DeviceError when CUDA refuses it, or when this build has no CUDA
template <typename T>
void launch_nufft_on_gpu(NufftDeviceKernel kernel, const NufftDeviceArrays<T>& arrays, void* stream);

/// Runs a kernel at once, on the CPU. Shared memory begins as NaN. @throws std::out_of_range for an element outside an array
template <typename T>
void emulate_nufft(NufftDeviceKernel kernel, const NufftDeviceArrays<T>& arrays, EmulatedOrder order);

}  // namespace mpol::ops
