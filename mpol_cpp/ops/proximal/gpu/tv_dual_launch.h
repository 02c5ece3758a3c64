#pragma once

// The kernels of the dual steps of total variation, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/proximal/gpu/tv_dual_bodies.h>

namespace mpol::ops {

template <typename Tile, typename T, typename Run>
void with_cut_body(TvDualKernel kernel, const TvDualArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case TvDualKernel::raise:
      return run(TvRaiseBody<T, Tile>{arrays});
    case TvDualKernel::gather:
      return run(TvGatherBody<T, Tile>{arrays});
    case TvDualKernel::finish:
      return run(TvFinishBody<T, Tile>{arrays});
  }
}

/// A kernel, and how it cuts images.
struct CutTvDualKernel {
  TvDualKernel kernel;
  TvDualCut cut;
};

/// Calls run(body) with the body of a kernel. TvDualCut::odd is for the emulation alone.
template <typename T, typename Run>
void with_body(CutTvDualKernel which, const TvDualArrays<T>& arrays, const Run& run) {
#ifndef __CUDACC__
  if (which.cut == TvDualCut::odd) return with_cut_body<OddTvTile>(which.kernel, arrays, run);
#endif
  if (which.cut == TvDualCut::high) with_cut_body<HighTvTile>(which.kernel, arrays, run);
  else with_cut_body<LowTvTile>(which.kernel, arrays, run);
}

}  // namespace mpol::ops
