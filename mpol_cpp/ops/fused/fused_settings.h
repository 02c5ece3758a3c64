#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/ops/fused/fused_terms.h>
#include <mpol_cpp/ops/simd/isa.h>

namespace mpol::ops {

using torch::Tensor;

/// The objective of one problem.
struct FusedProblem {
  double likelihood_scale = 1;  // what chi^2 is multiplied by: 1 / (2 N_norm)
  FusedTerms terms;
};

/// What a fused step works out, on the CPU or on a GPU.
struct FusedSettings {
  std::int64_t npix = 0, nchan = 1, problems = 1;
  double cell_area = 1;                // arcsec^2
  double likelihood_scale = 1;         // of every problem, unless `own` lists them
  FusedTerms terms;                    // weights of every problem, unless `own` lists them; settings of all
  std::vector<FusedProblem> own = {};  // one for each problem, or none
  Tensor inverse_power = {};           // (npix, npix/2 + 1) of the half plane, Jy^-2, of the regularizer of visibilities, psd
  Isa isa = selected_isa();            // of the CPU's kernels

  /// The objective of a problem, from `own` or as all have it.
  FusedProblem problem(std::int64_t number) const {
    return own.empty() ? FusedProblem{likelihood_scale, terms} : own[static_cast<std::size_t>(number)];
  }
  /// @throws ValueError unless there is a problem and a channel, and `own` lists none or all
  void check_counts() const;
};

/// A likelihood that is given images: chi^2 of each problem, (problems) float64, and its gradient, which it overwrites. Both
/// tensors are (problems, nchan, npix, npix), contiguous.
using ImageLikelihood = std::function<Tensor(const Tensor& images, Tensor& gradient)>;

}  // namespace mpol::ops
