#pragma once

#include <torch/types.h>

namespace mpol::detail {

using torch::Tensor;

/// The dtype that a tensor gets in a cast to a real dtype: complex ones the matching complex one, integers their own.
torch::Dtype target_dtype(const Tensor& tensor, torch::Dtype dtype);

/// Gives the tensor that every holder of it shares new data, on any device.
void replace_data(Tensor& tensor, const Tensor& data);

}  // namespace mpol::detail
