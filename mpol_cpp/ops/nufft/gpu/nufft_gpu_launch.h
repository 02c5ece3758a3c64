#pragma once

// The kernels of the nonuniform transform, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_planes.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_points.h>

namespace mpol::ops {

/// Calls run(body) with the body over points, which takes one image or several at a time.
template <NufftWork work, int width, typename T, typename Run>
void with_nufft_images(const NufftGpuArrays<T>& arrays, const Run& run) {
  if (arrays.shape.images == 1) return run(NufftTaskBody<T, width, work, 1>{arrays});
  run(NufftTaskBody<T, width, work, NufftCut<T, width>::most_images(work)>{arrays});
}

/// The same for a width of the window; nothing for a width that no tolerance has.
template <NufftWork work, typename T, typename Run>
void with_nufft_width(const NufftGpuArrays<T>& arrays, const Run& run) {
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
void with_body(NufftGpuKernel kernel, const NufftGpuArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case NufftGpuKernel::pad:
      return run(NufftPadBody<T>{{arrays}});
    case NufftGpuKernel::crop:
      return run(NufftCropBody<T>{{arrays}});
    case NufftGpuKernel::degrid:
      return with_nufft_width<NufftWork::degrid>(arrays, run);
    case NufftGpuKernel::grid:
      return with_nufft_width<NufftWork::grid>(arrays, run);
    case NufftGpuKernel::fused:
      return with_nufft_width<NufftWork::fused>(arrays, run);
    case NufftGpuKernel::gather:
      return run(NufftGatherBody<T>{{arrays}});
    case NufftGpuKernel::sum:
      return run(NufftSumBody<T>{arrays});
  }
}

}  // namespace mpol::ops
