#pragma once

#include <cstdint>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/crossval/fold_data.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Options of white_noise_data.
struct WhiteNoiseOptions {
  /// How much noise the second set has more, in standard deviations, > 0. Degrees of freedom are those of a change of that size:
  /// far below 1 the end of a fit's iterations shows in them.
  TORCH_ARG(double, perturbation) = 0.5;
  /// Seed of that noise: the same for all points of a search, so that they are compared with the same draw.
  TORCH_ARG(std::uint64_t, seed) = 0;
};

/// What the scores of white noise need (Score::sure, Score::gcv): the data, and the data with a little more noise,
///
///   d' = d + s e,   Re e_k, Im e_k ~ N(0, 1/w_k),
///
/// each as the training data of a FoldData that is tested by d. How the fitted visibilities M answer to e tells how many degrees
/// of freedom a fit has, whatever its priors:
///
///   df = E sum_k w_k Re(conj(e_k) (M_k(d') - M_k(d))) / s,
///
/// the trace of the hat matrix where the fit is linear. One draw has a standard deviation of about sqrt(2 df).
/// Source: Ramani, Blu & Unser 2008 (Monte Carlo SURE).
/// @param visibilities  whose channels are those of the image
/// @throws ValueError for a perturbation that is not above 0
std::vector<FoldData> white_noise_data(const GridCoords& coords, const Visibilities& visibilities, const LikelihoodMaker& make,
                                       const WhiteNoiseOptions& options = {});

/// The same with exact likelihoods.
std::vector<FoldData> exact_white_noise_data(const GridCoords& coords, const Visibilities& visibilities,
                                             const WhiteNoiseOptions& options = {});

}  // namespace mpol
