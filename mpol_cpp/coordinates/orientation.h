#pragma once

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

// Orders of image and visibility cubes, over the last two dimensions (conventions: docs/conventions.md).
//   sky     image, l grows to the left (East left), row 0 is South: what people look at and what FITS files hold
//   packed  fftshift of the cube with l growing to the right: what an FFT takes and gives
//   ground  visibilities, u grows to the right, zero in the middle

/// (…, npix, npix) image in sky orientation -> packed order.
Tensor sky_to_packed(const Tensor& sky);
/// (…, npix, npix) image in packed order -> sky orientation.
Tensor packed_to_sky(const Tensor& packed);
/// (…, npix, npix) visibilities in ground order -> packed order.
Tensor ground_to_packed(const Tensor& ground);
/// (…, npix, npix) visibilities in packed order -> ground order.
Tensor packed_to_ground(const Tensor& packed);

}  // namespace mpol
