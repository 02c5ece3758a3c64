#pragma once

#include <cstdint>

#include <torch/types.h>

#include <mpol_cpp/analysis/radial_fit/fourier_bessel_series.h>

namespace mpol {

/// The visibilities of each term of a series as cubic splines of the baseline's length, so that a sample costs four numbers
/// rather than one Bessel function for each term. With 64 knots to the shortest period 1/R the splines miss the Bessel functions
/// by less than 1e-6 of their largest value.
struct SeriesSpline {
  double spacing = 1;   ///< of the knots at 0, spacing, …, wavelengths
  Tensor coefficients;  ///< (knots, n) float64, arcsec^2: of the B-splines (RadialSpline) of each term
  double longest = 0;   ///< baseline up to which the splines hold, wavelengths
};

/// @param longest  baseline, wavelengths, >= 0
/// @throws ValueError where the table would take more than 2 GiB
SeriesSpline spline_of(const FourierBesselSeries& series, double longest);

}  // namespace mpol
