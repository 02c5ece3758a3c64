#pragma once

#include <string_view>

#include <torch/types.h>

namespace mpol {

/// Largest |value| of a contiguous float32, float64, complex64 or complex128 CPU tensor (of real and imaginary parts), 0
/// when it is empty, found in one pass without temporaries.
/// @throws DataError naming the first value that is not finite, as `name[i, j] is …`
double largest_magnitude(const torch::Tensor& values, std::string_view name);

/// @throws DataError naming the first value of a contiguous float32 or float64 CPU tensor that is not finite and > 0
void check_positive(const torch::Tensor& values, std::string_view name);

}  // namespace mpol
