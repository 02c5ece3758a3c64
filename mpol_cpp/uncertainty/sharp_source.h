#pragma once

#include <cstdint>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Whether an image is at a place as sharp as it can be: the brightest of the nine pixels there exceeds those three away from it,
/// which the Hann kernel does not reach, ten times. Where a residual is brightest at such a place, the source is sharper still
/// (unresolved, and bright), and no image of this grid follows it to the longest baselines.
/// @param image  (npix, npix) float64 on the CPU
bool is_at_its_sharpest(const Tensor& image, std::int64_t row, std::int64_t column);

}  // namespace mpol
