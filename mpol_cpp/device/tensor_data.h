#pragma once

#include <cstdint>

#include <torch/types.h>

namespace mpol::detail {

using torch::Tensor;

/// The dtype that a tensor gets in a cast to a real dtype: complex ones the matching complex one, integers their own.
torch::Dtype target_dtype(const Tensor& tensor, torch::Dtype dtype);

/// Gives the tensor that every holder of it shares new data, on any device.
void replace_data(Tensor& tensor, const Tensor& data);

/// Another number once the tensor's values were written to or loaded; the same after a move or a cast of its module.
inline std::int64_t version_of(const Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<std::int64_t>(tensor._version());
}

}  // namespace mpol::detail
