#pragma once

#include <c10/core/DeviceGuard.h>
#include <torch/types.h>

namespace mpol {

/// The device of a type that LibTorch's operations without a device of their own go to on this thread, such as "cuda" without
/// a number: cuda:0 unless a CurrentDevice says otherwise. @throws DeviceError where no device of the type is there
torch::Device current_device(c10::DeviceType type);

/// Makes a device the current one of its type on this thread, while this lives; then the earlier one is it again.
class CurrentDevice {
 public:
  /// @throws DeviceError when the device is not there
  explicit CurrentDevice(torch::Device device);

 private:
  c10::DeviceGuard guard_;
};

}  // namespace mpol
