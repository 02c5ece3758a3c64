#pragma once

namespace mpol {

/// Options of a Nufft.
struct NufftOptions {
  /// Error relative to the norm of the result: 1e-6 to 0.1 in float32, 1e-13 to 0.1 in float64. Near an optimum, where
  /// residuals are small, the error of a gradient is larger by |data| / |residual|: train with no less than 1e-6.
  double tolerance = 1e-6;
};

}  // namespace mpol
