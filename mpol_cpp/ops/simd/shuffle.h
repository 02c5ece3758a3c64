#pragma once

// Lanes of two vectors in another order; for files that are compiled once per instruction set.
#include <utility>

#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {

template <typename T>
using LaneSequence = std::make_integer_sequence<int, lanes<T>>;

template <typename T, int half, int... lane>
MPOL_INLINE Vector<T> interleave(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (lane / 2 + half * lanes<T> / 2 + lane % 2 * lanes<T>)...);
}
/// a0 b0 a1 b1 ... of the lower (0) or upper (1) half of the lanes.
template <typename T, int half>
MPOL_INLINE Vector<T> interleave(Vector<T> a, Vector<T> b) {
  return interleave<T, half>(a, b, LaneSequence<T>{});
}

template <typename T, int first, int... lane>
MPOL_INLINE Vector<T> every_other(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (2 * lane + first)...);
}
/// The even (0) or odd (1) elements of a, then those of b.
template <typename T, int first>
MPOL_INLINE Vector<T> every_other(Vector<T> a, Vector<T> b) {
  return every_other<T, first>(a, b, LaneSequence<T>{});
}

template <typename T, int first, int... lane>
MPOL_INLINE Vector<T> consecutive(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (lane + first)...);
}
/// The last element of a, then all but the last of b: what lies one before b in memory.
template <typename T>
MPOL_INLINE Vector<T> one_before(Vector<T> a, Vector<T> b) {
  return consecutive<T, lanes<T> - 1>(a, b, LaneSequence<T>{});
}
/// All but the first element of a, then the first of b: what lies one after a in memory.
template <typename T>
MPOL_INLINE Vector<T> one_after(Vector<T> a, Vector<T> b) {
  return consecutive<T, 1>(a, b, LaneSequence<T>{});
}

}  // namespace mpol::ops::MPOL_ISA
