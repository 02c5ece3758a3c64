#pragma once

#include <torch/types.h>

#include <mpol_cpp/ops/gpu/emulated_block.h>

namespace mpol::ops {

using torch::Tensor;

/// The Hann convolution of images (…, rows, columns) by one kernel on a GPU, or in its emulation on the CPU; without autograd.
/// @param out  like the images, float32 or float64, contiguous, in other memory
void hann_on_gpu(const Tensor& images, Tensor& out, EmulatedOrder order = EmulatedOrder::ascending);

}  // namespace mpol::ops
