#pragma once

#include <string>
#include <string_view>

#include <torch/types.h>

namespace mpol {

/// What is done when the device that was asked for is not there.
enum class Fallback {
  warn,   ///< take the CPU and say so once
  error,  ///< throw DeviceError with the list of devices that are there
};

/// Which device is wanted.
class DeviceRequest {
 public:
  enum class Kind { automatic, cpu, cuda, least_loaded };

  static DeviceRequest automatic() { return {Kind::automatic, -1}; }  ///< a usable GPU, else the CPU
  static DeviceRequest cpu() { return {Kind::cpu, -1}; }
  static DeviceRequest cuda(int index = 0) { return {Kind::cuda, index}; }
  static DeviceRequest least_loaded() { return {Kind::least_loaded, -1}; }  ///< the GPU with most free memory
  /// "auto", "cpu", "cuda", "cuda:N" or "least-loaded". @throws ValueError for anything else
  static DeviceRequest parse(std::string_view text);

  Kind kind() const { return kind_; }
  int index() const { return index_; }

 private:
  DeviceRequest(Kind kind, int index) : kind_(kind), index_(index) {}
  Kind kind_;
  int index_;
};

/// The device for a request. An automatic request without a usable GPU gives the CPU; with Fallback::warn it says so
/// once per process, with the reason. A named GPU that is not there: Fallback::warn takes the CPU and says so,
/// Fallback::error throws.
/// @throws DeviceError as above
torch::Device select_device(const DeviceRequest& request = DeviceRequest::automatic(), Fallback fallback = Fallback::warn);

/// Usable CUDA devices, 0 without any.
int cuda_device_count();
/// Why there is no usable GPU: "this build has no CUDA", …; empty when there is one.
std::string no_gpu_reason();

}  // namespace mpol
