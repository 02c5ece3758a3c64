#pragma once

#include <vector>

#include <mpol_cpp/fourier/slab_operator.h>
#include <mpol_cpp/objective/term.h>

namespace mpol {

/// The exact likelihood and regularizers of an image in row slabs, that of softplus base pixels and the Hann kernel (GriddedNet
/// as it is made without options): chi^2 / (2 cells) + sum_i lambda_i R_i over the whole image, each stencil counted by the rank
/// that holds its center. It takes terms of pixels and of their neighbors in the image, for one image and one weight each.
///
/// A step is two exchanges of halos of two rows, the two all-to-alls of SlabOperator, and a sum of a few numbers.
class SlabObjective {
 public:
  /// @throws ValueError for another term, or a term with several weights
  explicit SlabObjective(SlabOperator likelihood, std::vector<Term> terms = {});

  const SlabOperator& likelihood() const { return likelihood_; }  ///< as given
  /// The sky of this rank's rows, Jy/arcsec^2. Called by every rank.
  /// @param base  (nchan, rows, npix), float32 or float64, of which this rank holds its slab
  Tensor sky(const Tensor& base) const;
  /// Total, nll and weighted terms of the whole image, the same on each rank, and this rank's rows of the gradient of the total.
  /// Called by every rank. It is computed in float64 whatever the dtype of the image, so that where slabs end is not seen in
  /// float32.
  /// @param base      as of sky()
  /// @param gradient  same shape, overwritten
  std::vector<double> value_and_gradient(const Tensor& base, Tensor& gradient) const;

 private:
  Tensor sky_of(const Tensor& base_with_halo) const;
  Tensor evaluate(const Term& term, const Tensor& sky) const;

  SlabOperator likelihood_;
  std::vector<Term> terms_;
};

}  // namespace mpol
