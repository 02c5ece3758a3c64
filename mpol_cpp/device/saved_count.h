#pragma once

#include <cstdint>
#include <utility>

#include <ATen/ops/scalar_tensor.h>
#include <torch/types.h>

#include <mpol_cpp/device/tensor_data.h>

namespace mpol::detail {

/// A count that a module saves among its buffers, () int64. Its value on the host is read again only after the buffer was
/// written to or loaded: asking for it does not wait for a device.
class SavedCount {
 public:
  explicit SavedCount(std::int64_t value = 0, torch::Device device = torch::kCPU)
      : buffer_(at::scalar_tensor(value, torch::TensorOptions(torch::kInt64).device(device))), value_(value) {}

  /// For reset(): a tensor of its own of the same value, and the buffer that it became.
  torch::Tensor to_register() const { return buffer_.variable_data(); }
  void follow(torch::Tensor registered) {
    buffer_ = std::move(registered);
    version_ = version_of(buffer_);
  }

  std::int64_t value() const {
    if (const auto version = version_of(buffer_); version != version_) {
      value_ = buffer_.item<std::int64_t>();
      version_ = version;
    }
    return value_;
  }
  void set(std::int64_t value) {
    buffer_.fill_(value);
    value_ = value;
    version_ = version_of(buffer_);
  }

 private:
  torch::Tensor buffer_;
  mutable std::int64_t value_;
  mutable std::int64_t version_ = 0;
};

}  // namespace mpol::detail
