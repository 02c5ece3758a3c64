#pragma once

// The kernels of a fused step, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_half_plane.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_image.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_losses.h>

namespace mpol::ops {

/// Calls run with the Kinds that join channels and are there: none, one alone, or all of them for several.
template <typename T, typename Run>
void with_joining(const DeviceArrays<T>& arrays, const Run& run) {
  using regularizers::JoiningKinds, regularizers::Kinds;
  int count = 0;
  regularizers::for_each(JoiningKinds{}, [&](TermKind kind) { count += arrays.has(kind) ? 1 : 0; });
  if (count == 0) return run(Kinds<>{});
  if (count > 1) return run(JoiningKinds{});
  regularizers::for_each(JoiningKinds{}, [&](auto kind) {
    if (arrays.has(kind)) run(Kinds<decltype(kind)::value>{});
  });
}

/// Calls run(body) with the body of a kernel.
template <typename Tile, typename T, typename Run>
void with_body(DeviceKernel kernel, const DeviceArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case DeviceKernel::map:
      return run(MapBody<T, Tile>{arrays});
    case DeviceKernel::square:
      return run(SquareBody<T, Tile>{arrays});
    case DeviceKernel::weigh:
      return run(WeighBody<T, Tile>{arrays});
    case DeviceKernel::curve:
      return run(CurveBody<T, Tile>{arrays});
    case DeviceKernel::finish:
      return with_joining(arrays, [&](auto kinds) { run(FinishBody<T, Tile, decltype(kinds)>{arrays}); });
    case DeviceKernel::collect:
      return run(CollectBody<T, Tile>{arrays});
  }
}

/// Puts a kernel into a stream, a cudaStream_t of the present device. Not for TileKind::odd.
/// @throws DeviceError when CUDA refuses it, or when this build has no CUDA
template <typename T>
void launch_on_gpu(DeviceKernel kernel, TileKind tile, const DeviceArrays<T>& arrays, void* stream);

/// Runs a kernel at once, on the CPU. Shared memory begins as NaN. @throws std::out_of_range for an element outside an array
template <typename T>
void emulate(DeviceKernel kernel, TileKind tile, const DeviceArrays<T>& arrays, EmulatedOrder order);

}  // namespace mpol::ops
