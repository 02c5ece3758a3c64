#pragma once

// Part of nufft_kernels_isa.cpp, which is compiled once per instruction set: everything here is in an unnamed namespace.
#include <cstring>

#include <mpol_cpp/ops/simd/shuffle.h>
#include <mpol_cpp/ops/simd/wide.h>

#define MPOL_INLINE_LAMBDA __attribute__((always_inline))

namespace mpol::ops::MPOL_ISA {
namespace {

template <int i>
struct Index {
  static constexpr int value = i;
};
template <int begin, int end, typename Body>
MPOL_INLINE void unroll(const Body& body) {
  if constexpr (begin < end) {
    body(Index<begin>{});
    unroll<begin + 1, end>(body);
  }
}

/// Adds the odd blocks of `block` lanes of a and b to the even ones.
template <typename T, int block, int... lane>
MPOL_INLINE Vector<T> fold(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (2 * (lane / block) * block + lane % block)...) +
         __builtin_shufflevector(a, b, ((2 * (lane / block) + 1) * block + lane % block)...);
}

/// Sums `count` vectors over their blocks of `last` lanes; they fill count * last / lanes vectors in their order.
template <typename T, int count, int block, int last>
MPOL_INLINE void fold_all(Vector<T>* vectors) {
  if constexpr (block >= last) {
    for (std::int64_t i = 0; i < count / 2; ++i) {
      vectors[i] = fold<T, block>(vectors[2 * i], vectors[2 * i + 1], LaneSequence<T>{});
    }
    fold_all<T, count / 2, block / 2, last>(vectors);
  }
}

/// One complex number in all lanes.
template <typename T>
MPOL_INLINE Vector<T> broadcast_pair(const T* pair) {
  if constexpr (sizeof(T) == 4) {
    double both;
    std::memcpy(&both, pair, sizeof both);
    return reinterpret_cast<Vector<T>>(broadcast<double>(both));
  } else {
#if defined(__AVX512F__)
    return _mm512_maskz_broadcast_f64x2(every_lane<T>, _mm_loadu_pd(pair));
#elif defined(__AVX2__)
    return _mm256_broadcast_pd(reinterpret_cast<const __m128d*>(pair));
#else
    return load<T>(pair);
#endif
  }
}

/// A sum in float64, whatever the dtype of what is added.
struct WideSum {
  Vector<double> sum{};

  MPOL_INLINE void add(Vector<double> values) { sum += values; }
  MPOL_INLINE void add(Vector<float> values) {
    for (const auto part : widened<float>(values).part) sum += part;
  }
  MPOL_INLINE double total() const {
    double result = 0;
    for (int i = 0; i < lanes<double>; ++i) result += sum[i];
    return result;
  }
};

}  // namespace
}  // namespace mpol::ops::MPOL_ISA
