#pragma once

#include <torch/types.h>

#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// A tensor as kernels see it, empty where it is undefined.
template <typename T>
DeviceArray<T> device_array(const torch::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {static_cast<T*>(tensor.data_ptr()), tensor.numel()};
}

}  // namespace mpol::ops
