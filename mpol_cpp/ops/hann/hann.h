#pragma once

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// Convolves each image with the 3x3 Hann kernel outer([1/4, 1/2, 1/4]), zero padded at the border.
///
/// The operation is its own adjoint; differentiable to any order. On the CPU one pass over the image, rows in parallel,
/// bitwise the same for any thread count. Registered as `mpol::hann(Tensor sky) -> Tensor`.
/// @param sky  (…, npix, npix), float32 or float64, any device
/// @throws ShapeError with fewer than two dimensions
Tensor hann(const Tensor& sky);

/// The same into a tensor that is there, without autograd.
/// @param out  like sky, contiguous, another tensor
void hann_out(const Tensor& sky, Tensor& out);

}  // namespace mpol::ops
