#pragma once

#include <cstdint>

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_fit/geometry_fit.h>
#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Visibilities against the length of their baselines as they are and as a fitted geometry sees them, means over all channels in
/// bins. Both profiles have one channel.
struct GeometryProfile {
  /// Over baselines on the ground, and over deprojected ones with the centre at the phase centre.
  VisibilityProfile before, after;
  Tensor model;  ///< (nbins) float64, Jy: of the fit, in the middle of each bin of `after`
};

/// The longest deprojected baseline of all samples, wavelengths.
double longest_deprojected(const Visibilities& visibilities, const DiscGeometry& geometry);

/// Visibilities of a disc, its centre at the phase centre, against the length of the deprojected baseline: weighted means over
/// all channels, in one channel.
/// @param bins  of equal width up to the longest baseline, >= 1  @throws ValueError
VisibilityProfile deprojected_profile(const Visibilities& visibilities, const DiscGeometry& geometry, std::int64_t bins);

/// @param bins  of equal width up to the longest (deprojected) baseline, >= 1  @throws ValueError
GeometryProfile geometry_profile(const Visibilities& visibilities, const GeometryFit& fit, std::int64_t bins = 50);

/// Whether what the model leaves is noise: chi^2 of the weighted means of the residuals in cells of deprojected baseline (16
/// lengths, 12 directions), over their degrees of freedom. About 1 for noise as the weights say, however many samples a cell has.
double residual_structure(const Visibilities& visibilities, const GeometryFit& fit);

}  // namespace mpol
