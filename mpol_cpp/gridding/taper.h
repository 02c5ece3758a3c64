#pragma once

#include <functional>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Weight T(u, v) in [0, 1] of samples, from their u, v in wavelengths: two float64 tensors of one shape -> float64 of
/// that shape. It must be even, T(-u, -v) = T(u, v), so that images are real.
using Taper = std::function<Tensor(const Tensor& u, const Tensor& v)>;

/// The taper that convolves images with a circular Gaussian of that full width at half maximum:
/// T = exp(-pi^2 FWHM^2 q^2 / (4 ln 2)).
/// @param fwhm  arcsec, finite and >= 0
/// @throws ValueError otherwise
Taper gaussian_taper(double fwhm);

}  // namespace mpol
