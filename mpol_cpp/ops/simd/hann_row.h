#pragma once

// The Hann kernel [1/4, 1/2, 1/4] x [1/4, 1/2, 1/4] along an image row, one vector after another; for files that are compiled
// once per instruction set.
#include <mpol_cpp/ops/simd/shuffle.h>
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {

/// [1/4, 1/2, 1/4], of rows or of pixels.
template <typename T>
MPOL_INLINE Vector<T> hann_blend(Vector<T> before, Vector<T> own, Vector<T> after) {
  return T(0.5) * own + T(0.25) * (before + after);
}

/// A row's way through the kernel. Neighbors along it come out of registers: a load that begins one element further crosses a
/// cache line each time.
/// @tparam Blended  from the place of a vector to the three rows there, blended by hann_blend(); 0 beyond the last pixel
template <typename T, typename Blended>
class HannRow {
 public:
  MPOL_INLINE explicit HannRow(const Blended& blended) : blended_(blended), own_(blended(0)) {}

  /// At the vector at i, after the one before it.
  MPOL_INLINE Vector<T> at(std::int64_t i) {
    const auto next = blended_(i + lanes<T>);
    const auto smoothed = hann_blend<T>(one_before<T>(before_, own_), own_, one_after<T>(own_, next));
    before_ = own_;
    own_ = next;
    return smoothed;
  }

 private:
  const Blended blended_;
  Vector<T> before_{}, own_;
};

}  // namespace mpol::ops::MPOL_ISA
