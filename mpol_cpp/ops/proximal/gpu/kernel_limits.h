#pragma once

#include <cstdint>

#include <torch/types.h>

namespace mpol::ops {

/// @param like    (problems, nchan, npix, npix)
/// @param blocks  of a kernel that works on all images
/// @throws ValueError unless these are images of float32 or float64 whose pixels and blocks kernels can count
void check_images_of_kernels(const torch::Tensor& like, std::int64_t blocks);

}  // namespace mpol::ops
