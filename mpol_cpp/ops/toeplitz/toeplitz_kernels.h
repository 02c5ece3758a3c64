#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

/// What ToeplitzConvolution computes with besides transforms, in one table for each instruction set.
namespace mpol::ops {

/// What a quadratic form about an anchor gives.
struct QuadraticSums {
  double value = 0;     ///< sum D (linear + T D)
  double gradient = 0;  ///< |linear + 2 T D|^2
  double change = 0;    ///< |2 T D|^2

  QuadraticSums& operator+=(const QuadraticSums& other) {
    value += other.value;
    gradient += other.gradient;
    change += other.change;
    return *this;
  }
};

template <typename T>
struct ToeplitzKernels {
  /// Multiplies row rows[k] of the first `kept` columns of a panel by factors[column] * kernel[column * count + k],
  /// k = 0 ... count - 1. There are as many factors as a panel has columns.
  void (*multiply_panel)(T* panel, const std::int32_t* rows, std::int64_t count, const T* kernel, std::int64_t kept,
                         const T* factors);

  /// gradient = linear + 2 product for n pixels with D = x - anchor, and its sums, each lane's in a fixed order; a null anchor
  /// is zero.
  QuadraticSums (*quadratic_row)(const T* product, const T* x, const T* anchor, const T* linear, T* gradient, std::int64_t n);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
ToeplitzKernels<T> toeplitz_kernels(Isa isa);

}  // namespace mpol::ops
