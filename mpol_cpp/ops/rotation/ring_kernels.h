#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

/// Correlation of a template of few points with an image in polar coordinates over all rotations, in one table for each
/// instruction set.
namespace mpol::ops {

/// Shifts that are computed beyond the last one: a ring is read that far past its second turn.
inline constexpr std::int64_t ring_margin = 16;

/// Points of a template: the first value that each meets in the rings, and its weight.
template <typename T>
struct RingPoints {
  const std::int32_t* starts;
  const T* weights;
  std::int64_t count;
};

template <typename T>
struct RingKernels {
  /// out[s] = sum_k weights[k] rings[starts[k] + s] for s of [0, nphi), and as many more as fill a vector, fewer than
  /// ring_margin: what lies there is periodic, so that those are other shifts once more. The sum goes in the order of points.
  /// @return  the largest of them
  T (*correlate)(const T* rings, const RingPoints<T>& points, std::int64_t nphi, T* out);
  /// The largest alone.
  T (*highest)(const T* rings, const RingPoints<T>& points, std::int64_t nphi);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
RingKernels<T> ring_kernels(Isa isa);

}  // namespace mpol::ops
