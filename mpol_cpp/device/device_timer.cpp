#include <mpol_cpp/device/device_timer.h>

#include <mpol_cpp/device/streams.h>

namespace mpol {

DeviceTimer::DeviceTimer(torch::Device device) : device_(device) { start(); }

void DeviceTimer::start() {
  stopped_ = false;
  if (detail::has_streams(device_)) begin_event_.emplace(detail::record_event(device_, detail::EventTiming::on));
  begin_ = std::chrono::steady_clock::now();
}

void DeviceTimer::stop() {
  stopped_ = true;
  if (detail::has_streams(device_)) end_event_.emplace(detail::record_event(device_, detail::EventTiming::on));
  end_ = std::chrono::steady_clock::now();
}

double DeviceTimer::seconds() {
  if (!stopped_) stop();
  if (!detail::has_streams(device_)) return std::chrono::duration<double>(end_ - begin_).count();
  end_event_->synchronize();
  return 1e-3 * begin_event_->elapsedTime(*end_event_);
}

}  // namespace mpol
