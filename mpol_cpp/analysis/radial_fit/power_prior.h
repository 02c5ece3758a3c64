#pragma once

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// What is known of the power p of a profile's visibilities before the data: log p is smooth against log q, and each p has an
/// inverse gamma distribution. Its maximum together with the data is where (Jennings et al. 2020, section 2.3)
///
///   T log p = (p0 + (v^2 + D)/2)/p - (alpha - 1/2)
///
/// with v and D the mean and variance of the visibilities at the series' frequencies under that very p, and T the matrix of
/// smoothness times the integral of (d^2 log p/d (log q)^2)^2 over log q.
struct PowerPrior {
  double alpha = 1.05;         ///< of the inverse gamma distribution, >= 1: larger ones want less power where data say little
  double smoothness = 1e-4;    ///< of log p, >= 0
  double least_power = 1e-15;  ///< p0, Jy^2, > 0
};

/// The matrix T. @param frequencies  (n) float64, increasing, n >= 3  @return  (n, n), symmetric, positive semidefinite
Tensor smoothness_matrix(const Tensor& frequencies, double smoothness);

/// One step of log p towards the equation above: (1 + T) log p' = log p + (p0 + (v^2 + D)/2)/p - (alpha - 1/2), of which
/// the last two terms are at most 3.
/// @param power     p, (n) float64, Jy^2
/// @param expected  v^2 + D, (n), Jy^2
/// @param factor    Cholesky factor of 1 + T, lower
Tensor next_power(const Tensor& power, const Tensor& expected, const Tensor& factor, const PowerPrior& prior);

}  // namespace mpol
