#pragma once

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/analysis/radial_fit/fourier_bessel_series.h>
#include <mpol_cpp/analysis/radial_fit/radial_profile_fit.h>
#include <mpol_cpp/analysis/sources/visibility_model.h>
#include <mpol_cpp/device/module.h>

namespace mpol {

/// An axisymmetric disc whose brightness against radius is free: the visibilities of a Fourier-Bessel series,
///
///   V = cos i exp(-2 pi i (u East + v North)) sum_k areas_k J0(2 pi q r_k) I_k
///
/// from a table of splines (SeriesSpline), so that a sample costs as little as with a ring. Differentiable to any order with
/// respect to the profile and the geometry, on the CPU or a GPU.
///
/// Parameters, float64 unless cast: `brightness` (n), Jy/arcsec^2, at the radii of the series; `inclination`, `position_angle`
/// (), radian; `offset` (2), arcsec East and North. Buffers, float64: `coefficients` (knots, n), the table, and `at_frequencies`
/// (n, n), the transform at the frequencies of the series.
class RadialProfileModelImpl : public Module<RadialProfileModelImpl>, public VisibilityModel {
 public:
  /// A disc without brightness. @param longest  deprojected baseline up to which it will be asked for, wavelengths
  /// @throws ValueError as spline_of()
  RadialProfileModelImpl(const FourierBesselSeries& series, const DiscGeometry& geometry, double longest);
  /// The mean of a fit, with its power spectrum as the prior. Its table reaches the fit's baselines whatever the geometry
  /// becomes, of a fit beyond 60 degrees those of twice the deprojected length.
  explicit RadialProfileModelImpl(const RadialProfileFit& fit);
  void reset() override;

  /// @throws ValueError for baselines longer than the table
  Tensor visibilities(const Tensor& u, const Tensor& v) override;

  /// -ln of the Gaussian process's prior, sum v^2/(2 p), v being the visibilities of the disc seen face on at the series'
  /// frequencies: beside chi^2/2 it makes the fit's mean the best profile. Differentiable.
  /// @param power  p, (n) Jy^2, as RadialProfileFit has it  @return  (), in the brightness' dtype
  Tensor negative_log_prior(const Tensor& power) const;

  const FourierBesselSeries& series() const { return series_; }  ///< its radii and frequencies
  Tensor brightness() const { return brightness_; }              ///< the parameter
  DiscGeometry geometry() const;                                 ///< the parameters as they are now

 private:
  FourierBesselSeries series_;
  DiscGeometry start_;
  Tensor start_brightness_, at_frequencies_;
  double spacing_ = 1, longest_ = 0;
  Tensor coefficients_, brightness_, inclination_, position_angle_, offset_;
};

TORCH_MODULE(RadialProfileModel);

}  // namespace mpol
