#include <mpol_cpp/device/streams.h>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace mpol::detail {

bool can_compute(torch::Device device) { return device.is_cpu() || has_streams(device); }

bool has_streams(torch::Device device) {
  const auto type = device.type();
  return type != c10::DeviceType::CPU && type != c10::DeviceType::Meta && c10::impl::hasDeviceGuardImpl(type);
}

c10::Stream current_stream(torch::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

c10::Stream side_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/false);
}

c10::Event record_event(torch::Device device, EventTiming timing) {
  // Only CUDA's events with the backend's own default measure time.
  c10::Event event(device.type(), timing == EventTiming::on ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT);
  event.record(current_stream(device));
  return event;
}

}  // namespace mpol::detail
