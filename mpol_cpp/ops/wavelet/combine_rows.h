#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

namespace mpol::ops {

/// Elements that combine_rows() may read and write beyond the n-th of each row: a cache line's and more.
inline constexpr std::int64_t room_behind_rows = 32;

template <typename T>
struct WaveletKernels {
  /// first = sum_k of_first[k] rows[k],  second = sum_k of_second[k] rows[k],  n values each, in whole vectors.
  /// Neither of them is among the rows.
  void (*combine_rows)(const T* const* rows, const T* of_first, const T* of_second, int count, T* first, T* second,
                       std::int64_t n);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
WaveletKernels<T> wavelet_kernels(Isa isa);

}  // namespace mpol::ops
