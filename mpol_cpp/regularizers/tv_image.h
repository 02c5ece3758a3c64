#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Total variation of each channel image, summed over channels:
///   sum sqrt((I[c,i+1,j] - I[c,i,j])^2 + (I[c,i,j+1] - I[c,i,j])^2 + epsilon)
/// over the (npix-1)^2 block where both forward differences exist. Cube and result as in regularizers.h.
/// @param epsilon  Jy^2/arcsec^4, > 0, keeps the gradient finite where the image is flat
/// Source: Rudin, Osher & Fatemi 1992; the form of MPoL's TV_image.
at::Tensor tv_image(const at::Tensor& sky_cube, double epsilon = 1e-10);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct TvImage : RegularizerDefaults {
  static constexpr Driver driver = Driver::differences;
  static constexpr Cost cost = Cost::large;
  static constexpr double settings[most_settings] = {1e-10};
  static const Regularizer& descriptor();

  template <typename T>
  using Formula = SmoothedLength<T>;
};

}  // namespace mpol::regularizers
