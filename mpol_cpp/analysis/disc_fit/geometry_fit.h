#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/analysis/disc_fit/radial_spline.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// What the visibilities of a disc are compared with, once its centre is at the phase centre and its plane face on.
enum class GeometryModel {
  free,      ///< any real function of the deprojected baseline: least variance in azimuth
  gaussian,  ///< a Gaussian disc
  ring,      ///< a ring with a Gaussian profile
  disc,      ///< of constant brightness
};

/// Options of fit_geometry().
struct GeometryFitOptions {
  TORCH_ARG(GeometryModel, model) = GeometryModel::free;  ///< what the data are compared with
  TORCH_ARG(int, most_iterations) = 100;                  ///< >= 1
};

/// A number and its standard deviation.
struct Measured {
  double value = 0, error = 0;  ///< in one unit, which the field says that has them
};

/// How a disc lies on the sky, from its visibilities.
struct GeometryFit {
  GeometryModel model = GeometryModel::free;  ///< that was fitted
  DiscGeometry geometry;                      ///< of least chi^2
  DiscGeometry errors;  ///< standard deviations, in the same units; 90 degrees: the position angle is not known
  /// Correlations of inclination, position angle, offset East, offset North.
  std::array<std::array<double, 4>, 4> correlation{};
  Measured flux;                      ///< Jy; of the free profile where it meets q = 0
  std::optional<Measured> size;       ///< as in DiscModel, arcsec; the free profile has none
  std::optional<Measured> width;      ///< of the ring, arcsec
  double chi_squared = 0;             ///< of real and imaginary parts
  double structure = 0;               ///< residual_structure(): about 1 where the residuals are noise
  std::int64_t samples = 0;           ///< of all channels
  std::int64_t parameters = 0;        ///< that were fitted, those of the profile among them
  int iterations = 0;                 ///< of Levenberg's and Marquardt's method, after the starts
  bool converged = false;             ///< false: `most_iterations` were used up
  bool inclination_found = false;     ///< the disc is flatter than a face-on one by more than three sigma
  std::vector<std::string> warnings;  ///< what speaks against the fit, in words; also logged
  RadialSpline profile;               ///< of the free model, Jy against wavelengths; empty else

  /// chi^2 over the degrees of freedom, 2 samples - parameters.
  double reduced_chi_squared() const;
  /// The model's real visibility, Jy, with its centre at the phase centre, at a deprojected baseline (wavelengths).
  double model_at(double q) const;
  /// The same of many. @param q  float64 on the CPU  @return  in its shape
  Tensor model_at(const Tensor& q) const;
};

/// Inclination, position angle and centre of an axisymmetric disc by weighted least squares over all samples of all channels,
/// each at its own u, v: minimises
///
///   chi^2 = sum w |V exp(2 pi i (u East + v North)) - P(q)|^2,   q = hypot((u cos PA - v sin PA) cos i, u sin PA + v cos PA)
///
/// P is the transform of a model with flux and size of its own, or, `free`, whatever cubic spline fits best: that assumes nothing
/// but symmetry, since a wrong geometry mixes different values of the true profile at one q. The spline is solved for wherever
/// the geometry is (variable projection); its knots are those that predict the data best (Akaike's criterion), lest it
/// follows noise. Starts come from a dirty image (the centre and size of what has flux) and from many tilts; Levenberg's and
/// Marquardt's method goes on from the best, first on part of the samples. One flux, or profile, serves all channels.
///
/// Errors are those of the inverse of the normal matrix, flux, size and profile among the parameters, times sqrt(max(1, reduced
/// chi^2)); with the free profile those of the tilt also over 1 - r, r being the part of the curvature that noise in the
/// profile's slope makes. They are of Gaussian noise as the weights say, in a disc that is as symmetric as the model; where
/// residuals are alike in neighbouring baselines (a warning), they are multiplied by the root of `structure` instead. The
/// inclination's is half the range that one sigma of ln cos i makes, so that it stays finite for a disc seen face on. Where the
/// disc is not flatter than a face-on one by three sigma, the position angle has the error of 90 degrees, and a warning. Other
/// warnings: a source that the baselines do not resolve, no convergence, residuals that are alike in neighbouring baselines (the
/// model or the symmetry is wrong). They are logged. The same bits for any number of threads.
/// @throws ValueError for options out of range; DataError when there are fewer than 20 samples, no baseline has a length, or
///         no source is found above five sigma
GeometryFit fit_geometry(const Visibilities& visibilities, const GeometryFitOptions& options = {});

/// "free", "gaussian", "ring", "disc".
std::string name_of(GeometryModel model);

}  // namespace mpol
