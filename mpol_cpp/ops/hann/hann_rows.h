#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

/// The Hann convolution of image rows on the CPU, in one table for each instruction set.
namespace mpol::ops {

template <typename T>
struct HannRows {
  /// out: the kernel on three rows of n pixels, of which no others are touched.
  void (*convolve)(const T* below, const T* center, const T* above, T* out, std::int64_t n);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
HannRows<T> hann_rows(Isa isa);

}  // namespace mpol::ops
