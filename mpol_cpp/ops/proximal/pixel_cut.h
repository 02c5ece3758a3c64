#pragma once

#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// What a proximal map leaves of a pixel: nothing below 0, or, of pixels of either sign, what is beyond a threshold. C++17, no
/// LibTorch: the CUDA compiler reads it.
template <typename T>
struct PixelCut {
  bool either_sign = false;  ///< it goes towards 0 by the threshold; else what is below 0 becomes 0
  T threshold = 0;

  /// What is no number stays so.
  MPOL_DEVICE T operator()(T x) const {
    if (!either_sign) return x > T(0) ? x : x < T(0) ? T(0) : x;
    return x > threshold ? x - threshold : x < -threshold ? x + threshold : T(0) * x;
  }
};

}  // namespace mpol::ops
