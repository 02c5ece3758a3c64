#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Total variation of second order, that of the slopes of each channel image, summed over channels:
///   sum sqrt(a^2 + b^2 + 2 c^2 + epsilon),   a = I[c,i+1,j] - 2 I[c,i,j] + I[c,i-1,j],   b = I[c,i,j+1] - 2 I[c,i,j] +
///   I[c,i,j-1],
///                                            c = I[c,i+1,j+1] - I[c,i+1,j] - I[c,i,j+1] + I[c,i,j]
/// over the (npix-2)^2 pixels that have both neighbours in rows and columns: the Frobenius norm of the Hessian. A plane costs
/// nothing, so that slopes are kept where total variation makes steps of them. Of fewer than three pixels a side it is 0. Cube
/// and result as in regularizers.h.
/// @param epsilon  Jy^2/arcsec^4, > 0, keeps the gradient finite where the image is a plane
/// Source: Lefkimmiatis, Bourquard & Unser 2012 (Hessian-based norms).
at::Tensor tv_slope(const at::Tensor& sky_cube, double epsilon = 1e-10);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct TvSlope : RegularizerDefaults {
  static constexpr Driver driver = Driver::curvatures;
  static constexpr double settings[most_settings] = {1e-10};
  static const Regularizer& descriptor();

  template <typename T>
  using Formula = SmoothedLength<T>;
};

}  // namespace mpol::regularizers
