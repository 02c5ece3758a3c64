#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

/// Correlation of a template of few points with an image in polar coordinates over all rotations, in one table for each
/// instruction set.
namespace mpol::ops {

/// Shifts that are computed beyond the last one: a ring is read that far past its second turn.
inline constexpr std::int64_t ring_margin = 32;

/// Most points of a template that is screened.
inline constexpr std::int64_t most_screened_points = 4096;
/// What 16-bit weights of a template may add up to in magnitude, less this for each point: sums of products are within 16 bits
/// then.
inline constexpr double most_screened_weight = 65000, screened_weight_of_point = 3;
/// The largest 16-bit value of rings and weights.
inline constexpr double most_screened_value = 32767;

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
  /// Rings in 16 bits: out = values / step, rounded, with the step such that the largest magnitude is 32767 (0 of zeros).
  /// @return the step; infinity where the values are so small that it has no reciprocal, and nothing is written
  double (*narrow)(const T* rings, std::int64_t count, std::int16_t* out);
  /// The largest of sum_k floor(weights[k] rings[starts[k] + s] / 65536) over the shifts, in 16 bits: where the weights keep to
  /// most_screened_weight, it is less than the sum's largest / 65536 by less than the number of points.
  std::int64_t (*screened)(const std::int16_t* rings, const RingPoints<std::int16_t>& points, std::int64_t nphi);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
RingKernels<T> ring_kernels(Isa isa);

}  // namespace mpol::ops
