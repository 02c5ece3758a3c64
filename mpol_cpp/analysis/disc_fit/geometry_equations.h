#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/analysis/disc_fit/least_squares.h>
#include <mpol_cpp/analysis/disc_fit/radial_spline.h>
#include <mpol_cpp/analysis/disc_fit/tilt.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Places in the parameters of a geometry fit. Size and width are those of the plane of the disc times sqrt(cos i), arcsec, and
/// offsets are in arcsec: what data say of these hardly depends on the tilt. Their signs mean nothing, so that zero is no border.
namespace geometry_parameter {
inline constexpr std::size_t along = 0, across = 1, east = 2, north = 3, flux = 4, size = 5, width = 6;
inline constexpr std::size_t of_geometry = 4;
}  // namespace geometry_parameter

/// The largest eta = -ln cos i at which equations are made: 89.4 degrees; beyond it chi^2 is infinite.
inline constexpr double largest_eta = 4.6;

/// Gauss' normal equations of one shape, its flux and size beside its geometry, from one pass over all samples. Visibilities are
/// turned to the centre first, where the model is real, so that the centre is decided by imaginary parts and the rest by
/// real ones: to this order they do not depend on each other.
NormalEquations shape_equations(const Visibilities& visibilities, DiscShape shape, const NormalEquations::Vector& at);

/// Splines that a free profile may be: knots, and what is expected of it there.
struct ProfileKnots {
  double spacing = 1;              ///< wavelengths
  std::vector<double> precisions;  ///< of each coefficient, 1/(mean square), Jy^-2: where noise is more, it is held back
  std::int64_t count() const { return static_cast<std::int64_t>(precisions.size()); }
};

/// The real profile, against the length of the deprojected baseline, that fits best at one geometry: it minimises
/// chi^2 + sum of precision coefficient^2.
struct FittedProfile {
  RadialSpline spline;        ///< wavelengths, Jy
  BandMatrix factor{0};       ///< Cholesky factor of its normal equations
  std::vector<double> gains;  ///< what each B-spline takes from chi^2 beside those of smaller knots
  double chi_squared = 0;     ///< of real and imaginary parts, and the sum of precisions
};

/// @param at  the four parameters of the geometry
FittedProfile fit_profile(const Visibilities& visibilities, const NormalEquations::Vector& at, const ProfileKnots& knots);

/// Normal equations of the four parameters of the geometry with the profile fitted anew wherever they are (variable
/// projection): what geometry and profile share is taken out of the matrix (Schur's complement). Two passes over all samples.
NormalEquations profile_equations(const Visibilities& visibilities, const NormalEquations::Vector& at, const ProfileKnots& knots);

/// How much of the curvature of the tilt in these equations is made by noise in the slope of the profile, 0 to 0.75: a profile
/// that follows noise looks as if it told the tilt. For the expected noise of the spline's coefficients C, trace(H^-1 T)/2 with T
/// = sum w dq dq^T (B'^T C B').
double noise_share(const Visibilities& visibilities, const NormalEquations::Vector& at, const ProfileKnots& knots,
                   const NormalEquations& equations);

}  // namespace mpol
