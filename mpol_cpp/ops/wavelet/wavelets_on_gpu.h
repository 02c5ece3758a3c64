#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// wavelet_analysis() and wavelet_synthesis() by kernels of a GPU, all images and transforms at once, two launches a level; on
/// the CPU they are emulated. Without a gradient; nobody waits for the device, and nothing comes from the host. Up to eight
/// transforms.
Tensor wavelet_analysis_on_gpu(const Tensor& images, const std::vector<std::int64_t>& moments, std::int64_t levels);
Tensor wavelet_synthesis_on_gpu(const Tensor& coefficients, const std::vector<std::int64_t>& moments, std::int64_t levels);

}  // namespace mpol::ops
