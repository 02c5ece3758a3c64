#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

/// What CpuLbfgs does to one piece of its vectors, in one table for each instruction set. Sums are float64, each lane's in a
/// fixed order.
namespace mpol::ops {

/// A gradient's product with a direction, and the sum of its magnitudes.
struct LbfgsSlope {
  double slope, magnitudes;
};

/// A direction's product with the gradient, and its largest magnitude.
struct LbfgsDescent {
  double slope, largest;
};

/// Pairs of the history: where s and y of each begin, and from which element on they are meant.
template <typename T>
struct LbfgsHistory {
  const T* const* moves;
  const T* const* changes;
  std::int64_t pairs, first;
};

inline constexpr std::int64_t lbfgs_margin = 16;

template <typename T>
struct LbfgsRowKernels {
  LbfgsSlope (*measure)(const T* gradient, const T* direction, std::int64_t n);
  /// products[4 k + q] of pair k: s g, y g, s y', y y' with the change y' of the latest pair.
  void (*correlate)(const LbfgsHistory<T>& history, const T* gradient, const T* latest, std::int64_t n, double* products);
  /// direction = factor * gradient + the pairs' factors times s and y. `sums` holds n values and lbfgs_margin more.
  LbfgsDescent (*steer)(const LbfgsHistory<T>& history, const double* move_factors, const double* change_factors,
                        const T* gradient, double factor, T* direction, std::int64_t n, double* sums);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
LbfgsRowKernels<T> lbfgs_row_kernels(Isa isa);

}  // namespace mpol::ops
