#pragma once

#include <complex>
#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

/// Weighted products of many channels of visibilities with many models, in one table for each instruction set.
namespace mpol::ops {

/// Samples that are weighted at a time and stay in the nearest cache while the models go by.
inline constexpr std::int64_t correlated_samples = 512;
/// Channels that share the reading of a model.
inline constexpr std::int64_t correlated_channels = 4;
/// Numbers of scratch memory that a kernel needs.
inline constexpr std::int64_t correlation_scratch = 2 * correlated_samples * correlated_channels;

/// Samples that channels and models have in common.
template <typename T>
struct CorrelatedBlock {
  const std::complex<T>* data;  ///< of channel c from data + c * row on
  const T* weights;             ///< the same
  std::int64_t row;             ///< samples of data between one channel and the next
  std::int64_t weight_row;      ///< the same of weights: 0 where channels share them
  std::int64_t channels;
  const std::complex<T>* model;  ///< of model m from model + m * model_row on
  std::int64_t model_row;
  std::int64_t models;
  std::int64_t samples;  ///< at most correlated_samples
};

template <typename T>
struct CorrelationKernels {
  /// Adds to product[c * models + m] the sum over the samples of w_c Re(conj(T_m) V_c), and to norm[…] that of w_c |T_m|^2. Sums
  /// of a block are taken in T, lane by lane in the order of samples. @param scratch  correlation_scratch numbers, and of the
  /// models `models` * correlated_samples more
  void (*add)(const CorrelatedBlock<T>& block, double* product, double* norm, T* scratch);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
CorrelationKernels<T> correlation_kernels(Isa isa);

}  // namespace mpol::ops
