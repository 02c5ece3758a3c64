#pragma once

#include <torch/types.h>

#include <mpol_cpp/analysis/radial_fit/fourier_bessel_series.h>

namespace mpol {

using torch::Tensor;

/// The Gaussian process of a profile given its power spectrum p and data: visibilities v at the series' frequencies have the
/// prior N(0, diag p), the data add chi^2 = I^T M I - 2 j^T I with v = Y I. In the variables v/sqrt(p) the matrix to be
/// factorized is 1 + sqrt(p) Y^-T M Y^-1 sqrt(p), which is well conditioned whatever p.
class ProfilePosterior {
 public:
  /// @param matrix, vector  M (n, n) and j (n) of RadialSums
  ProfilePosterior(const FourierBesselSeries& series, const Tensor& matrix, const Tensor& vector);

  /// Mean and covariance of v at one power spectrum.
  struct Spectrum {
    Tensor mean;        ///< (n), Jy
    Tensor covariance;  ///< (n, n), Jy^2
  };
  /// @param power  p, (n) float64, Jy^2, > 0  @throws DataError where rounding leaves no positive definite matrix
  Spectrum at(const Tensor& power) const;

  /// Beyond this power, Jy^2, a prior weighs nothing beside the data, and rounding takes over.
  double most_power() const;
  /// v to the brightness I, (n, n): the inverse of Y.
  const Tensor& inverse() const { return inverse_; }

 private:
  Tensor inverse_, matrix_, vector_;  // of v
};

}  // namespace mpol
