#pragma once

#include <torch/types.h>

#include <mpol_cpp/ops/proximal/image_vectors.h>

namespace mpol::ops {

using torch::Tensor;

/// PixelSums of each image by two kernels that nobody waits for; on the CPU they are emulated. Sums have a fixed order.
/// @param images  (problems, nchan, npix, npix), contiguous, float32 or float64
/// @return        (3, problems, nchan) float64, where the images are: pixels, variation, curvature; 0 for lengths not asked for
Tensor gpu_pixel_sums(const Tensor& images, const LengthEpsilons& epsilons);

}  // namespace mpol::ops
