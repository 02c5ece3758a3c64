#pragma once

// The kernels of the dual steps of cubes, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/proximal/gpu/cube_dual_bodies.h>

namespace mpol::ops {

template <typename Tile, typename T, typename Run>
void with_cut_body(CubeDualKernel kernel, const CubeDualArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case CubeDualKernel::turn:
      return run(CubeTurnBody<T>{arrays});
    case CubeDualKernel::gather:
      return run(CubeGatherBody<T, false>{arrays});
    case CubeDualKernel::look:
      if (arrays.slope.size == 0) return run(CubeLookBody<T, Tile, false, true>{arrays});
      return run(CubeLookBody<T, Tile, false, false>{arrays});
    case CubeDualKernel::norms:
      return run(CubeNormsBody<T>{arrays});
    case CubeDualKernel::raise:
      return run(CubeRaiseBody<T>{arrays});
    case CubeDualKernel::last_gather:
      return run(CubeGatherBody<T, true>{arrays});
    case CubeDualKernel::finish:
      if (arrays.slope.size == 0) return run(CubeLookBody<T, Tile, true, true>{arrays});
      return run(CubeLookBody<T, Tile, true, false>{arrays});
  }
}

/// A kernel, and how it cuts images.
struct CutCubeDualKernel {
  CubeDualKernel kernel;
  CubeDualCut cut;
};

/// Calls run(body) with the body of a kernel. CubeDualCut::odd is for the emulation alone.
template <typename T, typename Run>
void with_body(CutCubeDualKernel which, const CubeDualArrays<T>& arrays, const Run& run) {
#ifndef __CUDACC__
  if (which.cut == CubeDualCut::odd) return with_cut_body<OddCubeTile>(which.kernel, arrays, run);
#endif
  with_cut_body<UsualCubeTile>(which.kernel, arrays, run);
}

}  // namespace mpol::ops
