#pragma once

#include <chrono>
#include <optional>

#include <c10/core/Event.h>
#include <torch/types.h>

namespace mpol {

/// Measures how long a device worked: on a GPU between two events of its current stream, without waiting for it until the
/// time is asked for; on the CPU by the steady clock. It starts when it is made.
class DeviceTimer {
 public:
  /// Starts at once. @param device  any; on a GPU its current stream is measured
  explicit DeviceTimer(torch::Device device);

  /// Starts again.
  void start();
  /// Ends the measurement; what is put to work afterwards does not count. A second call ends it anew.
  void stop();
  /// Seconds from start() to stop(), or to now when it was not stopped. Waits for the device.
  double seconds();

 private:
  torch::Device device_;
  std::chrono::steady_clock::time_point begin_, end_;
  std::optional<c10::Event> begin_event_, end_event_;
  bool stopped_ = false;
};

}  // namespace mpol
