#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// How often rows and columns of so many pixels can be split in halves, at most `most` times.
std::int64_t wavelet_levels(std::int64_t npix, std::int64_t most);

/// The orthogonal Daubechies transforms W_n of images, periodic at their edges: rows and columns are each split in halves of low
/// and high frequencies, and the quarter of low frequencies again, `levels` times. Differentiable to any order. On the CPU by
/// kernels, images and transforms in parallel, the same bits for any number of threads; by kernels on a GPU, too, and elsewhere
/// by LibTorch's operations.
/// @param images   (…, rows, columns), float32 or float64
/// @param moments  n of each transform
/// @return         (transforms, …, rows, columns)
/// @throws ShapeError unless 2^levels divides rows and columns; ValueError for moments without a filter
Tensor wavelet_analysis(const Tensor& images, const std::vector<std::int64_t>& moments, std::int64_t levels);

/// Its adjoint, sum_n W_n^T y_n: of one transform also its inverse.
/// @param coefficients  (transforms, …, rows, columns)
Tensor wavelet_synthesis(const Tensor& coefficients, const std::vector<std::int64_t>& moments, std::int64_t levels);

/// The same two by LibTorch's operations on any device, without a gradient.
Tensor wavelet_analysis_by_tensors(const Tensor& images, const std::vector<std::int64_t>& moments, std::int64_t levels);
Tensor wavelet_synthesis_by_tensors(const Tensor& coefficients, const std::vector<std::int64_t>& moments, std::int64_t levels);

}  // namespace mpol::ops
