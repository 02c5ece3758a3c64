#pragma once

#include <cstdint>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/analysis/disc_fit/geometry_equations.h>
#include <mpol_cpp/analysis/disc_fit/least_squares.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// A fit, and how far the flux reaches that a dirty image shows.
struct ShapeStart {
  LeastSquaresFit fit;
  double reach = 0;  ///< from the middle of it, arcsec; 0 where none stands out
};

/// The fit of a shape from many starts (centre and size of the flux in a dirty image, a ladder of sizes, tilts all around), the
/// best of which go on by least squares; part of the samples decides between them, all end the fit.
/// @throws DataError when no baseline has a length, or the model without a source is not worse by 25 in chi^2
ShapeStart fit_shape_from_anywhere(const Visibilities& visibilities, DiscShape shape, int most_iterations);

/// The knots that predict the data best at one geometry: of three spacings and all counts those of the least chi^2 + 2 count
/// (Akaike), and the power of the profile around each. Without either it would follow noise, which looks like information on the
/// tilt.
/// @param reach  of the source from its centre, arcsec
ProfileKnots choose_knots(const Visibilities& visibilities, const NormalEquations::Vector& at, double reach);

/// chi^2 of a point of the best flux where the fit has its centre.
double chi_squared_of_point(const Visibilities& visibilities, const NormalEquations::Vector& at);

/// The fit of a free profile to part of the samples, from the geometry of a Gaussian's and from tilts all around.
LeastSquaresFit fit_profile_from_anywhere(const Visibilities& visibilities, const NormalEquations::Vector& gaussian,
                                          const ProfileKnots& knots);

}  // namespace mpol
