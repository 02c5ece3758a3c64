#pragma once

// The kernels of a fused step, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_half_plane.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_image.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_losses.h>

namespace mpol::ops {

/// Calls run with the Kinds that join channels and are there: none, one alone, or all of them for several.
template <typename T, typename Run>
void with_joining(const GpuArrays<T>& arrays, const Run& run) {
  using regularizers::JoiningKinds, regularizers::Kinds;
  int count = 0;
  regularizers::for_each(JoiningKinds{}, [&](TermKind kind) { count += arrays.has(kind) ? 1 : 0; });
  if (count == 0) return run(Kinds<>{});
  if (count > 1) return run(JoiningKinds{});
  regularizers::for_each(JoiningKinds{}, [&](auto kind) {
    if (arrays.has(kind)) run(Kinds<decltype(kind)::value>{});
  });
}

/// Calls run(body) with the body of a kernel for tiles of one kind.
template <typename Tile, typename T, typename Run>
void with_tiled_body(GpuKernel kernel, const GpuArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case GpuKernel::map:
      return run(MapBody<T, Tile>{arrays});
    case GpuKernel::square:
      return run(SquareBody<T, Tile>{arrays});
    case GpuKernel::weigh:
      return run(WeighBody<T, Tile>{arrays});
    case GpuKernel::curve:
      return run(CurveBody<T, Tile>{arrays});
    case GpuKernel::finish:
      return with_joining(arrays, [&](auto kinds) { run(FinishBody<T, Tile, decltype(kinds)>{arrays}); });
    case GpuKernel::collect:
      return run(CollectBody<T, Tile>{arrays});
  }
}

/// A kernel, and how it cuts its work.
struct TiledKernel {
  GpuKernel kernel;
  TileKind tile;
};

/// Calls run(body) with the body of a kernel. TileKind::odd is for the emulation alone.
template <typename T, typename Run>
void with_body(TiledKernel tiled, const GpuArrays<T>& arrays, const Run& run) {
#ifndef __CUDACC__
  if (tiled.tile == TileKind::odd) return with_tiled_body<OddTile>(tiled.kernel, arrays, run);
#endif
  if (tiled.tile == TileKind::high) with_tiled_body<HighTile>(tiled.kernel, arrays, run);
  else with_tiled_body<LowTile>(tiled.kernel, arrays, run);
}

}  // namespace mpol::ops
