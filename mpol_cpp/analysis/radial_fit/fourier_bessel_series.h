#pragma once

#include <cstdint>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Axisymmetric brightness that is zero beyond a radius R, as a Fourier-Bessel series of n terms, held by its values at the n
/// radii that belong to it (the discrete Hankel transform of order 0, Baddour & Chouinard 2015; as in Jennings et al. 2020):
///
///   r_k = R j_k/j_{n+1},   q_k = j_k/(2 pi R),   V(q) = sum_k 4 pi R^2/(j_{n+1}^2 J1(j_k)^2) J0(2 pi q r_k) I(r_k)
///
/// with j_k the k-th zero of J0. The brightness between these radii is the series, which has no wavelength below 2 R/n. float64
/// on the CPU.
class FourierBesselSeries {
 public:
  /// @param radius  R, arcsec, > 0  @param count  n, 2 to 5000  @throws ValueError
  FourierBesselSeries(double radius, std::int64_t count);

  double radius() const { return radius_; }                   ///< R, arcsec
  std::int64_t count() const { return radii_.size(0); }       ///< n
  const Tensor& radii() const { return radii_; }              ///< r_k, (n), arcsec
  const Tensor& frequencies() const { return frequencies_; }  ///< q_k, (n), wavelengths
  /// Solid angle that each radius stands for, (n), arcsec^2: the flux is the sum of these times the brightness.
  const Tensor& areas() const { return areas_; }

  /// V of brightness (Jy/arcsec^2) at baselines, for a disc seen face on. @param q  (m) wavelengths  @return  (m, n), arcsec^2
  Tensor transform(const Tensor& q) const;

 private:
  double radius_;
  Tensor radii_, frequencies_, areas_;
};

}  // namespace mpol
