#include <mpol_cpp/device/load.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

double memory_in_use(const DeviceMemory& memory) {
  if (memory.total_bytes <= 0) return 0;
  return 1.0 - static_cast<double>(memory.free_bytes) / static_cast<double>(memory.total_bytes);
}

void check_load_weights(double processor, double memory) {
  const bool fit = std::isfinite(processor) && std::isfinite(memory) && processor >= 0 && memory >= 0 && processor + memory > 0;
  if (fit) return;
  throw ValueError(fmt::format("the weights of processor and memory are {} and {}; they must be >= 0, and one of them > 0",
                               processor, memory));
}

void check_fraction(const char* name, double value) {
  if (value >= 0 && value <= 1) return;
  throw ValueError(fmt::format("{} is {}; it is a fraction, from 0 to 1", name, value));
}

std::vector<torch::Device> devices_of(const std::vector<GpuLoad>& loads) {
  std::vector<torch::Device> devices;
  devices.reserve(loads.size());
  for (const auto& load : loads) devices.push_back(load.device);
  return devices;
}

}  // namespace

std::vector<DeviceInfo> gpu_info() {
  std::vector<DeviceInfo> gpus;
  for (const auto& backend : device_backends()) {
    if (backend->type() == c10::DeviceType::CPU) continue;
    for (int index = 0; index < backend->count(); ++index) gpus.push_back(backend->info(index));
  }
  return gpus;
}

DeviceMemory memory_info(torch::Device device) {
  const auto backend = find_backend(device.type());
  const int index = std::max<int>(0, device.index());
  if (backend && index < backend->count()) return backend->memory(index);
  select_device(DeviceRequest::accelerator(device.type(), index), Fallback::error);  // throws
  return {};
}

std::vector<GpuLoad> gpu_load(double weight_processor, double weight_memory) {
  check_load_weights(weight_processor, weight_memory);
  std::vector<GpuLoad> loads;
  for (const auto& gpu : gpu_info()) {
    const double memory = memory_in_use(gpu.memory), processor = gpu.processor_load.value_or(0.0);
    const double weighted = (weight_processor * processor + weight_memory * memory) / (weight_processor + weight_memory);
    loads.push_back({gpu.device, gpu.processor_load ? weighted : memory, processor, memory});
  }
  return loads;
}

std::vector<torch::Device> devices_by_load(double weight_processor, double weight_memory) {
  auto loads = gpu_load(weight_processor, weight_memory);
  std::stable_sort(loads.begin(), loads.end(),
                   [](const GpuLoad& a, const GpuLoad& b) { return a.load != b.load ? a.load < b.load : a.memory < b.memory; });
  return devices_of(loads);
}

torch::Device select_device_by_load(double weight_processor, double weight_memory, Fallback fallback) {
  const auto devices = devices_by_load(weight_processor, weight_memory);
  return devices.empty() ? select_device(DeviceRequest::least_loaded(), fallback) : devices.front();
}

std::vector<torch::Device> available_gpus(double max_load, double max_memory) {
  check_fraction("max_load", max_load);
  check_fraction("max_memory", max_memory);
  auto loads = gpu_load();
  std::erase_if(loads, [&](const GpuLoad& load) { return load.processor > max_load || load.memory > max_memory; });
  std::stable_sort(loads.begin(), loads.end(), [](const GpuLoad& a, const GpuLoad& b) { return a.load < b.load; });
  return devices_of(loads);
}

}  // namespace mpol
