#pragma once

#include <vector>

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Fluxes of sources in each channel of the data. float64 on the CPU.
struct SourceFluxes {
  Tensor flux;         ///< (nchan, nsources) Jy
  Tensor error;        ///< (nchan, nsources) Jy, one standard deviation by the weights
  Tensor covariance;   ///< (nchan, nsources, nsources) Jy^2
  Tensor chi_squared;  ///< (nchan) of the visibilities less all sources
};

/// The spectrum of each of some sources whose shapes and places are known: in every channel the fluxes F_s that minimize
///
///   chi^2 = sum_k w_k |V_k - sum_s F_s T_sk|^2
///
/// over the samples k, with T_s the visibilities of source s at a flux of 1 Jy. All sources of a channel are solved for together,
/// so that one beside another does not count twice; channels are apart. With weights 1/sigma^2 of the real = of the imaginary
/// part, the errors are those of the noise; that a shape may be wrong, chi_squared tells.
/// @param visibilities  on any device; the sums are taken on the CPU, sample block by sample block
/// @param sources       at least one; their own flux is of no account
/// @throws ValueError without sources, or for one as disc_visibilities(); DataError where sources are so alike at the
///         samples that their fluxes cannot be told apart, or one has no visibilities there
SourceFluxes source_fluxes(const Visibilities& visibilities, const std::vector<DiscModel>& sources);

}  // namespace mpol
