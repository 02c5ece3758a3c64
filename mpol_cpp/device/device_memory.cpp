#include <mpol_cpp/device/device_memory.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <c10/core/CachingDeviceAllocator.h>

#include <mpol_cpp/device/select.h>

namespace mpol {
namespace {

/// A line of what the kernel says of this process, bytes.
std::int64_t of_process(std::string_view name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    std::int64_t kibibytes = 0;
    if (words >> first >> kibibytes && first == name) return 1024 * kibibytes;
  }
  return 0;
}

/// LibTorch's allocator of a device, where it counts and has begun; else nothing.
c10::DeviceAllocator* counting_allocator(torch::Device device) {
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

c10::DeviceIndex index_of(torch::Device device) { return std::max<c10::DeviceIndex>(device.index(), 0); }

}  // namespace

MemoryUse memory_use(torch::Device device) {
  check_device(device);
  if (device.is_cpu()) {
    const auto resident = of_process("VmRSS:");
    return {resident, std::max(resident, of_process("VmHWM:")), resident};
  }
  auto* allocator = device.is_meta() ? nullptr : counting_allocator(device);
  if (allocator == nullptr) return {};
  const auto stats = allocator->getDeviceStats(index_of(device));
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {stats.allocated_bytes[all].current, stats.allocated_bytes[all].peak, stats.reserved_bytes[all].current};
}

void reset_peak_memory(torch::Device device) {
  check_device(device);
  if (device.is_cpu()) {
    std::ofstream("/proc/self/clear_refs") << "5";  // of the kernel: the peak becomes what is resident
    return;
  }
  auto* allocator = device.is_meta() ? nullptr : counting_allocator(device);
  if (allocator != nullptr) allocator->resetPeakStats(index_of(device));
}

void empty_cache(torch::Device device) {
  check_device(device);
  if (device.is_cpu() || device.is_meta()) return;
  if (auto* allocator = counting_allocator(device)) allocator->emptyCache();
}

}  // namespace mpol
