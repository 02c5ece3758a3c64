#pragma once

#include <ATen/ops/sum.h>
#include <torch/types.h>

namespace mpol::losses::detail {

using torch::Tensor;

/// Sum over the last three dimensions in float64: rows in the tensor's own precision (ATen adds them in cascades, with
/// an error that does not grow with the row's length), the row sums in float64.
inline Tensor sum_cube(const Tensor& cube) { return cube.sum({-1}).to(torch::kFloat64).sum({-2, -1}); }

/// The same over the last dimension alone: (…, n) -> (…).
inline Tensor sum_last(const Tensor& values) { return values.sum({-1}, /*keepdim=*/false, torch::kFloat64); }

}  // namespace mpol::losses::detail
