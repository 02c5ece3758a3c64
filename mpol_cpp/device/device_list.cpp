#include <mpol_cpp/device/device_list.h>

#include <algorithm>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::string_view all_devices = "all";

std::vector<torch::Device> every_free_gpu() {
  std::vector<torch::Device> devices;
  for (const auto& backend : device_backends()) {
    if (backend->type() == c10::DeviceType::CPU) continue;
    for (int index = 0; index < backend->count(); ++index) {
      if (backend->memory(index).free_bytes >= least_free_bytes)
        devices.emplace_back(backend->type(), static_cast<torch::DeviceIndex>(index));
    }
  }
  if (devices.empty()) devices.emplace_back(torch::kCPU);
  return devices;
}

torch::Device device_of_list(std::string_view name, std::string_view list) {
  if (name == all_devices || name == "auto" || name == "least-loaded") {
    throw ValueError(
        fmt::format("device {} of the list '{}': a list has names such as cpu and cuda:N; write it by itself", name, list));
  }
  try {
    return select_device(DeviceRequest::parse(name), Fallback::error);
  } catch (const ValueError&) {
    throw ValueError(fmt::format("device '{}' of the list '{}' is none: a list has cpu, cuda:N and other names of `mpol devices`",
                                 name, list));
  }
}

}  // namespace

bool names_several_devices(std::string_view text) { return text == all_devices || text.find(',') != std::string_view::npos; }

std::vector<torch::Device> select_devices(std::string_view text) {
  if (text == all_devices) return every_free_gpu();
  if (!names_several_devices(text)) return {select_device(DeviceRequest::parse(text), Fallback::error)};
  std::vector<torch::Device> devices;
  for (auto rest = text;;) {
    const auto comma = rest.find(',');
    const auto device = device_of_list(rest.substr(0, comma), text);
    if (!device.is_cpu() && std::find(devices.begin(), devices.end(), device) != devices.end())
      throw ValueError(fmt::format("device {} comes twice in the list '{}': name each GPU once", device.str(), text));
    devices.push_back(device);
    if (comma == std::string_view::npos) return devices;
    rest.remove_prefix(comma + 1);
  }
}

std::string device_names(const std::vector<torch::Device>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.str());
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace mpol
