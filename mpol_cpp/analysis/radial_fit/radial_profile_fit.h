#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/analysis/radial_fit/fourier_bessel_series.h>
#include <mpol_cpp/analysis/radial_fit/power_prior.h>
#include <mpol_cpp/analysis/radial_fit/radial_sums.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Options of fit_radial_profile().
struct RadialProfileOptions {
  /// Radius R beyond which there is no brightness, arcsec; 0: half the field in which choose_field() sees flux.
  TORCH_ARG(double, radius) = 0;
  /// Radii of the profile; 0: 1.2 times as many as reach the longest baseline, 50 to 1000.
  TORCH_ARG(std::int64_t, points) = 0;
  TORCH_ARG(PowerPrior, prior) = {};       ///< what is expected of the power spectrum
  TORCH_ARG(int, most_iterations) = 2000;  ///< of the power spectrum, >= 1
  TORCH_ARG(double, tolerance) = 1e-3;     ///< relative change of all powers at which it has converged, > 0
};

/// The brightness of a disc against its radius, from its visibilities, with the Gaussian process that says how sure it is.
struct RadialProfileFit {
  FourierBesselSeries series;  ///< the radii, and what visibilities belong to a profile
  DiscGeometry geometry;       ///< that was assumed
  Tensor brightness;           ///< (n) float64, Jy/arcsec^2: mean of the posterior
  Tensor covariance;           ///< (n, n) float64, Jy^2/arcsec^4
  Tensor power;                ///< (n) float64, Jy^2: prior variance of the visibility at each frequency of the series
  double flux = 0;             ///< Jy, as the disc lies: cos i times the integral of the brightness
  double flux_error = 0;       ///< Jy
  double chi_squared = 0;      ///< of real and imaginary parts
  double longest = 0;          ///< deprojected baseline, wavelengths
  std::int64_t samples = 0;    ///< of all channels
  int iterations = 0;          ///< of the power spectrum
  bool converged = false;      ///< false: `most_iterations` were used up
  std::vector<std::string> warnings = {};  ///< what speaks against the fit, in words; also logged

  Tensor error() const;                ///< (n) float64, Jy/arcsec^2: standard deviations
  double reduced_chi_squared() const;  ///< chi^2 over 2 samples
  /// The real visibility of the disc as it lies, centred, Jy. @param q  (m) deprojected baselines, wavelengths
  Tensor visibilities_at(const Tensor& q) const;
  /// Profiles drawn from the posterior. @param count  >= 1  @return  (count, n) float64, Jy/arcsec^2
  Tensor samples_of(std::int64_t count, std::uint64_t seed) const;
};

/// The profile without a parametric form, as frank finds it (Jennings, Booth, Tazzari, Rosotti & Clarke 2020): the brightness of
/// a flat axisymmetric disc of known geometry is a Fourier-Bessel series with a Gaussian process for a prior, whose power
/// spectrum is found from the data with that of PowerPrior. Structure that no baseline has seen is left out, not made up: expect
/// the profile smoothed at about the resolution of the longest baselines that stand out of the noise. Negative brightness is not
/// excluded.
///
/// The samples are read once (RadialSums), or twice where `points` are not given; what follows takes (points)^3 a step. One
/// profile serves all channels.
///
/// Errors are those of noise as the weights say, given the power spectrum: they do not contain what the prior has smoothed away,
/// nor an error of the geometry. Warnings: no convergence; radii too coarse for the longest baseline; weights that do not
/// describe the residuals; flux at the edge of the radius.
/// @throws ValueError for options out of range or a disc seen edge on; DataError where no baseline has a length
RadialProfileFit fit_radial_profile(const Visibilities& visibilities, const DiscGeometry& geometry,
                                    const RadialProfileOptions& options = {});

/// The same of sums that were made before, block by block. @param options  radius and points are those of the series
RadialProfileFit fit_radial_profile(const FourierBesselSeries& series, const DiscGeometry& geometry, const RadialSums& sums,
                                    const RadialProfileOptions& options = {});

}  // namespace mpol
