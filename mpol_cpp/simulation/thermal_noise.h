#pragma once

#include <cstdint>

#include <torch/arg.h>
#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// What decides how noisy a visibility is.
struct ReceiverOptions {
  TORCH_ARG(double, system_temperature) = 100;      ///< K, towards the zenith
  TORCH_ARG(double, zenith_opacity) = 0;            ///< lower sources: T_sys exp(tau (1/sin(elevation) - 1))
  TORCH_ARG(double, antenna_efficiency) = 0.7;      ///< effective over geometric area, in (0, 1]
  TORCH_ARG(double, correlator_efficiency) = 0.88;  ///< in (0, 1]
  TORCH_ARG(double, channel_width) = 2e9;           ///< Hz
  TORCH_ARG(std::int64_t, polarizations) = 2;       ///< 1, or 2 averaged to Stokes I
};

/// Standard deviation of the real, and of the imaginary, part of a visibility in Jy (radiometer equation):
///
///   sigma = 2 k T_sys / (eta_antenna A) / (eta_correlator sqrt(2 dnu dt n_pol)),   A = pi (diameter/2)^2
///
/// @param elevation         (…) float64, radian
/// @param diameter          of the dishes, metres
/// @param integration_time  seconds
/// @return                  same shape as `elevation`, float64, Jy
/// @throws ValueError for options out of range
/// Source: Thompson, Moran & Swenson, Interferometry and Synthesis in Radio Astronomy, section 6.2.
Tensor thermal_noise_sigma(const Tensor& elevation, double diameter, double integration_time, const ReceiverOptions& options);

/// Independent complex normal numbers with standard deviation 1 in the real and in the imaginary part: (count)
/// complex128, the same for the same seed on every machine (Mersenne twister, Box & Muller 1958).
Tensor standard_complex_noise(std::int64_t count, std::uint64_t seed);

}  // namespace mpol
