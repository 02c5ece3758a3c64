#include <mpol_cpp/device/current_device.h>

#include <c10/core/impl/VirtualGuardImpl.h>

#include <mpol_cpp/device/select.h>

namespace mpol {
namespace {

torch::Device checked(torch::Device device) {
  check_device(device);
  return device;
}

}  // namespace

torch::Device current_device(c10::DeviceType type) {
  check_device(torch::Device(type));
  return c10::impl::VirtualGuardImpl(type).getDevice();
}

CurrentDevice::CurrentDevice(torch::Device device) : guard_(checked(device)) {}

}  // namespace mpol
