#pragma once

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// An elliptical Gaussian source, known on the sky and in the Fourier plane.
struct SkyGaussian {
  double peak = 1;                           ///< Jy/arcsec^2
  double offset_east = 0, offset_north = 0;  ///< of its centre, arcsec
  double sigma_minor = 1, sigma_major = 1;   ///< standard deviations, arcsec (either may be the larger)
  double position_angle = 0;                 ///< of the axis of sigma_major, radian, North through East

  /// 2 pi peak sigma_minor sigma_major, Jy.
  double flux() const;
  /// Brightness at offsets from the phase centre, arcsec to the East and North; any shape, real, Jy/arcsec^2:
  ///   I = peak exp(-(a^2/sigma_minor^2 + b^2/sigma_major^2)/2),  a = E' cos PA - N' sin PA,  b = E' sin PA + N' cos PA
  Tensor brightness(const Tensor& east, const Tensor& north) const;
  /// Its Fourier transform at u, v in wavelengths; any shape -> the same, complex, Jy:
  ///   V = flux exp(-2 pi^2 (sigma_minor^2 u'^2 + sigma_major^2 v'^2) - 2 pi i (u East + v North))
  Tensor visibility(const Tensor& u, const Tensor& v) const;
};

}  // namespace mpol
