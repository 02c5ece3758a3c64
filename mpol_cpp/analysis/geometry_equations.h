#pragma once

#include <cstdint>

#include <mpol_cpp/analysis/disc_models.h>
#include <mpol_cpp/analysis/least_squares.h>
#include <mpol_cpp/analysis/radial_spline.h>
#include <mpol_cpp/analysis/tilt.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Places in the parameters of a geometry fit. Size and width are those of the plane of the disc times sqrt(cos i), arcsec, and
/// offsets are in arcsec: what data say of these hardly depends on the tilt.
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

/// The real profile, against the length of the deprojected baseline, that fits best at one geometry.
struct FittedProfile {
  RadialSpline spline;     ///< wavelengths, Jy
  BandMatrix factor{0};    ///< Cholesky factor of its normal equations
  double chi_squared = 0;  ///< of real and imaginary parts
};

/// @param spacing, count  of the knots, wavelengths  @param at  the four parameters of the geometry
FittedProfile fit_profile(const Visibilities& visibilities, const NormalEquations::Vector& at, double spacing,
                          std::int64_t count);

/// Normal equations of the four parameters of the geometry with the profile fitted anew wherever they are (variable
/// projection): what geometry and profile share is taken out of the matrix (Schur's complement). Two passes over all samples.
NormalEquations profile_equations(const Visibilities& visibilities, const NormalEquations::Vector& at, double spacing,
                                  std::int64_t count);

}  // namespace mpol
