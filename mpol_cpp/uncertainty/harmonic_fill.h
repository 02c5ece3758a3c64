#pragma once

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Images in which the marked pixels are filled smoothly from those around them: each is the mean of its neighbours,
///
///   sum over the neighbours j of i, in the image, of (x_j - x_i) = 0,
///
/// so that no filled pixel is brighter or fainter than all pixels around the region, and none is negative where those are not.
/// Linear in the images.
/// @param images  (…, npix, npix), any floating dtype and device
/// @param region  broadcastable to the images, not 0 where a pixel is filled
/// @return        like the images; equal to them where nothing is marked
/// @throws ShapeError when the shapes do not fit; ValueError when an image is marked everywhere
/// Source: Laplace's equation by conjugate gradients.
Tensor harmonic_fill(const Tensor& images, const Tensor& region);

/// Weights that rise smoothly from 0 around the marked pixels to 1 in their middle, the square of u over its largest value:
///
///   sum over the neighbours j of i, in the image, of (u_i - u_j) = 1 on the marked pixels,   u = 0 elsewhere
///
/// ((1 - r^2/R^2)^2 on a disc of radius R). What they weigh hardly depends on scales much smaller than the region.
/// @param region  (…, npix, npix), not 0 where a pixel is marked
/// @return        (…, npix, npix) float64 on the CPU; 0 where nothing is marked
/// @throws ShapeError, ValueError as harmonic_fill
Tensor smooth_window(const Tensor& region);

}  // namespace mpol
