#pragma once

#include <cstdint>

#include <mpol_cpp/analysis/disc_models.h>
#include <mpol_cpp/analysis/least_squares.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// The fit of a shape from many starts (centre and size of the flux in a dirty image, a ladder of sizes, tilts all around), the
/// best of which go on by least squares; part of the samples decides between them, all end the fit.
/// @throws DataError when no baseline has a length, or the model without a source is not worse by 25 in chi^2
LeastSquaresFit fit_shape_from_anywhere(const Visibilities& visibilities, DiscShape shape, int most_iterations);

/// The knots of a free profile.
struct ProfileKnots {
  double spacing = 1;  ///< wavelengths
  std::int64_t count = 4;
};

/// @param fwhm     of a Gaussian that fits, as in the parameters of its fit, arcsec
/// @param knots    up to the longest baseline; 0: as the size asks for
ProfileKnots choose_knots(const Visibilities& visibilities, double fwhm, std::int64_t knots);

/// Only the knots up to the last one at which the data see a source: beyond it the spline would follow noise, which
/// looks like information on the tilt. @param at  a geometry near the truth
ProfileKnots cut_to_signal(const Visibilities& visibilities, const NormalEquations::Vector& at, ProfileKnots knots);

/// The fit of a free profile from the geometry of a Gaussian's and from tilts all around, likewise.
LeastSquaresFit fit_profile_from_anywhere(const Visibilities& visibilities, const NormalEquations::Vector& gaussian,
                                          const ProfileKnots& knots, int most_iterations);

}  // namespace mpol
