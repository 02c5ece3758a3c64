#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Proximal maps, linear maps and solvers work on tensors (…, channels, rows, columns) of a floating dtype on any device. What
/// stands before the last three dimensions are independent problems; a number for each of them has the shape (…). Where a
/// problem has more dimensions of its own (`problem_dims` > 3), sums run over those too.

/// Sum over the last dimensions, one for each problem: (…) float64 on x's device.
/// @throws ShapeError when x has fewer dimensions
Tensor problem_sums(const Tensor& x, std::int64_t problem_dims = 3);
/// Euclidean length of each problem, (…) float64.
Tensor problem_norms(const Tensor& x, std::int64_t problem_dims = 3);
/// One number for each problem, (…) or one for all, as a factor of tensors like x: (…, 1, 1, 1), x's dtype and device.
Tensor as_factor(const Tensor& values, const Tensor& x, std::int64_t problem_dims = 3);
/// The same of numbers on the host, in the order of the problems.
Tensor as_factor(const std::vector<double>& values, const Tensor& x, std::int64_t problem_dims = 3);
/// What is left of each length when the threshold is taken away, beside it: 1 - threshold / length, or 0. Of the lengths' shape.
/// @param threshold  >= 0, broadcastable to the lengths
Tensor shortening(const Tensor& lengths, const Tensor& threshold);
/// Numbers of each problem on the host; waits for the device.
std::vector<double> on_host(const Tensor& values);
/// How many problems there are.
std::int64_t problem_count(const Tensor& x, std::int64_t problem_dims = 3);

}  // namespace mpol
