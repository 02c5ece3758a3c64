#pragma once

#include <ATen/ops/sum.h>
#include <torch/types.h>

namespace mpol::losses::detail {

using torch::Tensor;

/// Sum over the last dimension in float64: (…, n) -> (…).
inline Tensor sum_last(const Tensor& values) { return values.sum({-1}, /*keepdim=*/false, torch::kFloat64); }

}  // namespace mpol::losses::detail
