#pragma once

// The kernels of a fused step, on a GPU and in the emulation; C++17, no LibTorch.
#include <stdexcept>

#include <mpol_cpp/ops/fused/gpu/fused_gpu_half_plane.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_image.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_losses.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_rows.h>

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
      return run(CollectBody<T>{arrays});
    case GpuKernel::transform:
    case GpuKernel::gradient:
      throw std::logic_error("a kernel of rows was asked for tiles");
  }
}

/// The same for images that are cut into rows, of the kernels that there are. Whatever joins channels is one kernel's.
template <typename Rows, typename T, typename Run>
void with_body_of_rows(GpuKernel kernel, const GpuArrays<T>& arrays, const Run& run) {
  using regularizers::JoiningKinds, regularizers::Kinds;
  if (kernel == GpuKernel::map) return run(MapRowsBody<T, Rows, RowsOf::base>{arrays});
  if (kernel == GpuKernel::transform) return run(MapRowsBody<T, Rows, RowsOf::image>{arrays});
  if (kernel == GpuKernel::weigh) return run(WeighColumnsBody<T, Rows>{arrays});
  if (kernel == GpuKernel::gradient) return run(GradientRowsBody<T, Rows>{arrays});
  if (regularizers::has_any(JoiningKinds{}, [&](TermKind kind) { return arrays.has(kind); }))
    return run(FinishRowsBody<T, Rows, JoiningKinds>{arrays});
  run(FinishRowsBody<T, Rows, Kinds<>>{arrays});
}

/// A kernel, and how it cuts its work.
struct TiledKernel {
  GpuKernel kernel;
  TileKind tile;
};

/// Calls run(body) with the body of a kernel. The odd kinds are for the emulation alone.
template <typename T, typename Run>
void with_body(TiledKernel tiled, const GpuArrays<T>& arrays, const Run& run) {
  const auto [kernel, tile] = tiled;
#ifndef __CUDACC__
  if (tile == TileKind::odd) return with_tiled_body<OddTile>(kernel, arrays, run);
  if (tile == TileKind::odd_rows) return with_body_of_rows<OddRows>(kernel, arrays, run);
#endif
  switch (tile) {
    case TileKind::two_rows:
      return with_body_of_rows<TwoRows>(kernel, arrays, run);
    case TileKind::four_rows:
      return with_body_of_rows<FourRows>(kernel, arrays, run);
    case TileKind::eight_rows:
      return with_body_of_rows<EightRows>(kernel, arrays, run);
    case TileKind::high:
      return with_tiled_body<HighTile>(kernel, arrays, run);
    default:
      return with_tiled_body<LowTile>(kernel, arrays, run);
  }
}

}  // namespace mpol::ops
