#pragma once

// The kernels of the nonuniform transform, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_planes.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_points.h>

namespace mpol::ops {

/// Calls run(body) with the body over points, which takes one image or several at a time.
template <NufftWork work, int width, typename T, typename Run>
void with_nufft_images(const NufftDeviceArrays<T>& arrays, const Run& run) {
  if (arrays.shape.images == 1) return run(NufftTaskBody<T, width, work, 1>{arrays});
  run(NufftTaskBody<T, width, work, NufftCut<T, width>::most_images(work)>{arrays});
}

/// The same for a width of the window; nothing for a width that no tolerance has.
template <NufftWork work, typename T, typename Run>
void with_nufft_width(const NufftDeviceArrays<T>& arrays, const Run& run) {
  const int width = arrays.shape.width;
  if constexpr (sizeof(T) == 4) {
    if (width == 4) return with_nufft_images<work, 4>(arrays, run);
    if (width == 5) return with_nufft_images<work, 5>(arrays, run);
    if (width == 6) return with_nufft_images<work, 6>(arrays, run);
    if (width == 7) return with_nufft_images<work, 7>(arrays, run);
  } else {
    if (width == 6) return with_nufft_images<work, 6>(arrays, run);
    if (width == 7) return with_nufft_images<work, 7>(arrays, run);
    if (width == 9) return with_nufft_images<work, 9>(arrays, run);
    if (width == 12) return with_nufft_images<work, 12>(arrays, run);
    if (width == 14) return with_nufft_images<work, 14>(arrays, run);
    if (width == 15) return with_nufft_images<work, 15>(arrays, run);
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
