#pragma once

// Part of fft_kernels_isa.cpp, which is compiled once per instruction set: everything here is in an unnamed namespace.
#include <utility>

#include <mpol_cpp/ops/fft/fft_butterflies.h>
#include <mpol_cpp/ops/simd/shuffle.h>

namespace mpol::ops::MPOL_ISA {
namespace {

/// Swaps the off-diagonal block-by-block sub-matrices of rows i and i + block.
template <typename T, int block, int... lane>
MPOL_INLINE void exchange(Vector<T>& upper, Vector<T>& lower, std::integer_sequence<int, lane...>) {
  const auto left = __builtin_shufflevector(upper, lower, ((lane & block) != 0 ? lanes<T> + lane - block : lane)...);
  lower = __builtin_shufflevector(upper, lower, ((lane & block) != 0 ? lanes<T> + lane : lane + block)...);
  upper = left;
}

template <typename T, int block = 1>
MPOL_INLINE void transpose(Vector<T> (&rows)[lanes<T>]) {
  if constexpr (block < lanes<T>) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) {
      if ((i & block) == 0) exchange<T, block>(rows[i], rows[i + block], LaneSequence<T>{});
    }
    transpose<T, 2 * block>(rows);
  }
}

/// A square of complex vectors: as many of them as they have lanes.
template <typename T>
struct Block {
  Vector<T> re[lanes<T>], im[lanes<T>];
};

/// The given rows of a panel, of which there are `count` or more than lanes, transposed: lanes are rows.
template <typename T>
MPOL_INLINE Block<T> load_rows(const T* panel, const std::int32_t* rows, std::int64_t count) {
  Block<T> block;
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; ++i) {
    const auto value = i < count ? load_complex<T>(panel + rows[i] * 2 * fft_batch<T>) : Complex<T>{};
    block.re[i] = value.re;
    block.im[i] = value.im;
  }
  transpose<T>(block.re);
  transpose<T>(block.im);
  return block;
}

/// Elements `begin` to `end` of lines to a panel of half their length: even elements are real parts, odd ones imaginary.
template <typename T>
MPOL_INLINE void pack_lines(const T* lines, std::int64_t distance, std::int64_t count, std::int64_t begin, std::int64_t end,
                            T* panel) {
  Vector<T> block[lanes<T>];
  for (auto x = begin; x < end; x += lanes<T>) {
    const auto elements = end - x;
    if (count >= lanes<T> && elements >= lanes<T>) {
#pragma GCC unroll 16
      for (int i = 0; i < lanes<T>; ++i) block[i] = load<T>(lines + i * distance + x);
    } else {
      for (int i = 0; i < lanes<T>; ++i) block[i] = load_first<T>(lines + i * distance + x, i < count ? elements : 0);
    }
    transpose<T>(block);
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) {
      if (i < elements) store<T>(panel + (x + i) * fft_batch<T>, block[i]);
    }
  }
}

template <typename T>
MPOL_INLINE void unpack_lines(const T* panel, std::int64_t begin, std::int64_t end, T* lines, std::int64_t distance,
                              std::int64_t count) {
  Vector<T> block[lanes<T>];
  for (auto x = begin; x < end; x += lanes<T>) {
    const auto elements = end - x;
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) block[i] = i < elements ? load<T>(panel + (x + i) * fft_batch<T>) : Vector<T>{};
    transpose<T>(block);
    if (count >= lanes<T> && elements >= lanes<T>) {
#pragma GCC unroll 16
      for (int i = 0; i < lanes<T>; ++i) store<T>(lines + i * distance + x, block[i]);
    } else {
      for (int i = 0; i < lanes<T> && i < count; ++i) store_first<T>(lines + i * distance + x, block[i], elements);
    }
  }
}

}  // namespace
}  // namespace mpol::ops::MPOL_ISA
