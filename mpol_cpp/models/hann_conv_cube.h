#pragma once

#include <mpol_cpp/device/module.h>

namespace mpol {

/// Convolves every channel image with the 3x3 Hann kernel outer([1/4, 1/2, 1/4]), zero padded, not trainable: the
/// smoothness that one pixel's neighbours lend it. No parameters, no state.
class HannConvCubeImpl : public Module<HannConvCubeImpl> {
 public:
  void reset() override {}
  /// (…, nchan, npix, npix) -> the same shape, sky orientation.
  Tensor forward(const Tensor& sky) const;
};

TORCH_MODULE(HannConvCube);

}  // namespace mpol
