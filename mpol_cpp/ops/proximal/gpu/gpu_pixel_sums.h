#pragma once

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// The sum of the pixels of each image and its total variation as losses::tv_image has it, by two kernels that nobody waits for;
/// on the CPU they are emulated. Sums have a fixed order.
/// @param images  (problems, nchan, npix, npix), contiguous, float32 or float64
/// @return        (2, problems, nchan) float64, where the images are
Tensor gpu_pixel_sums(const Tensor& images, double epsilon);

}  // namespace mpol::ops
