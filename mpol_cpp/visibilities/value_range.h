#pragma once

#include <string_view>

#include <torch/types.h>

namespace mpol {

/// Largest |value| of a contiguous float32, float64, complex64 or complex128 CPU tensor (of real and imaginary parts), 0
/// when it is empty, found in one pass without temporaries.
/// @throws DataError naming the first value that is not finite, as `name[i, j] is …`
double largest_magnitude(const torch::Tensor& values, std::string_view name);

/// The sum of a float32 or float64 tensor in float64, a block after the other: LibTorch's sum in another dtype copies all of what
/// it sums.
double sum_in_float64(const torch::Tensor& values);

/// @throws DataError naming the first value of a contiguous float32 or float64 CPU tensor that is not finite and > 0
void check_positive(const torch::Tensor& values, std::string_view name);

/// Refuses weights and data that arithmetic in a dtype cannot hold: a weight that becomes 0, all of them so small or so large
/// that sums of their squares do, or data whose chi^2 overflows. In one pass without temporaries.
/// @param data, weights  contiguous CPU tensors, finite, the weights > 0
/// @param dtype          float32 or float64
/// @throws DataError with the value, the limit and what to do
void check_representable(const torch::Tensor& data, const torch::Tensor& weights, torch::Dtype dtype);

}  // namespace mpol
