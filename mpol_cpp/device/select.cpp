#include <mpol_cpp/device/select.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/load.h>

namespace mpol {
namespace {

struct DefaultDevice {
  std::mutex mutex;
  std::optional<torch::Device> device;
};

DefaultDevice& default_device() {
  static DefaultDevice chosen;
  return chosen;
}

std::optional<torch::Device> chosen_default() {
  auto& chosen = default_device();
  const std::lock_guard lock(chosen.mutex);
  return chosen.device;
}

std::string device_words(const DeviceBackend& backend, int index) {
  return backend.type() == c10::DeviceType::CPU ? "cpu" : fmt::format("{}:{}", backend.name(), index);
}

std::string devices_there() {
  std::string list = "cpu";
  for (const auto& backend : device_backends()) {
    if (backend->type() == c10::DeviceType::CPU) continue;
    for (int index = 0; index < backend->count(); ++index) list += ", " + device_words(*backend, index);
  }
  return list;
}

torch::Device device_of_backend(const DeviceBackend& backend, int index) {
  return {backend.type(), static_cast<torch::DeviceIndex>(index)};
}

[[noreturn]] void refuse_device(const std::string& wanted, const std::string& reason) {
  throw DeviceError(fmt::format("device {} is not there: {}; devices here: {}", wanted, reason, devices_there()));
}

torch::Device fall_back(const std::string& wanted, const std::string& reason, Fallback fallback) {
  if (fallback == Fallback::error) refuse_device(wanted, reason);
  log_warning_once(fmt::format("computing on the CPU: {}", reason));
  return torch::kCPU;
}

/// The first GPU, of any backend, that has memory free.
std::optional<torch::Device> first_free() {
  for (const auto& backend : device_backends()) {
    if (backend->type() == c10::DeviceType::CPU) continue;
    for (int index = 0; index < backend->count(); ++index) {
      if (backend->memory(index).free_bytes >= least_free_bytes) return device_of_backend(*backend, index);
    }
  }
  return std::nullopt;
}

/// Why no device of a backend can be had; `index` is one too large when there are some.
std::string why_not_there(const DeviceBackend* backend, const std::string& name) {
  if (backend == nullptr) return fmt::format("no backend {} is registered", name);
  const int count = backend->count();
  if (count == 0) return backend->no_device_reason();
  return count == 1 ? "there is one GPU" : fmt::format("there are {} GPUs", count);
}

torch::Device named_device(const DeviceRequest& request) {
  const auto backend = find_backend(request.type());
  if (backend && request.index() < backend->count()) return device_of_backend(*backend, request.index());
  const auto name = backend ? backend->name() : c10::DeviceTypeName(request.type(), /*lower_case=*/true);
  refuse_device(fmt::format("{}:{}", name, request.index()), why_not_there(backend.get(), name));
}

torch::Device automatic_device(Fallback fallback) {
  if (const auto chosen = chosen_default()) return *chosen;
  if (const auto free = first_free()) return *free;
  return fall_back("auto", no_gpu_reason(), fallback);
}

torch::Device least_loaded_device(Fallback fallback) {
  const auto order = devices_by_load();
  return order.empty() ? fall_back("least-loaded", no_gpu_reason(), fallback) : order.front();
}

}  // namespace

DeviceRequest DeviceRequest::parse(std::string_view text) {
  if (text == "auto") return automatic();
  if (text == "cpu") return cpu();
  if (text == "least-loaded") return least_loaded();
  const auto colon = text.find(':');
  for (const auto& backend : device_backends()) {
    if (backend->type() == c10::DeviceType::CPU || text.substr(0, colon) != backend->name()) continue;
    if (colon == std::string_view::npos) return accelerator(backend->type());
    int index = -1;
    const auto number = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error == std::errc() && end == number.data() + number.size() && index >= 0) return accelerator(backend->type(), index);
  }
  std::string others;
  for (const auto& backend : device_backends()) {
    if (backend->type() == c10::DeviceType::CPU || backend->type() == c10::DeviceType::CUDA) continue;
    others += fmt::format(", {0}, {0}:N", backend->name());
  }
  throw ValueError(fmt::format("device is '{}'; it must be auto, cpu, cuda, cuda:N{} or least-loaded", text, others));
}

torch::Device select_device(const DeviceRequest& request, Fallback fallback) {
  switch (request.kind()) {
    case DeviceRequest::Kind::cpu:
      return torch::kCPU;
    case DeviceRequest::Kind::automatic:
      return automatic_device(fallback);
    case DeviceRequest::Kind::least_loaded:
      return least_loaded_device(fallback);
    case DeviceRequest::Kind::accelerator:
      break;
  }
  return named_device(request);
}

void check_device(torch::Device device) {
  if (device.is_cpu() || device.is_meta()) return;
  named_device(DeviceRequest::accelerator(device.type(), std::max<int>(0, device.index())));
}

void set_default_device(torch::Device device) {
  if (!device.is_cpu()) device = named_device(DeviceRequest::accelerator(device.type(), std::max<int>(0, device.index())));
  auto& chosen = default_device();
  const std::lock_guard lock(chosen.mutex);
  chosen.device = device;
}

void reset_default_device() {
  auto& chosen = default_device();
  const std::lock_guard lock(chosen.mutex);
  chosen.device.reset();
}

bool compiled_in(c10::DeviceType type) {
  const auto backend = find_backend(type);
  return backend && backend->compiled_in();
}

bool functional(c10::DeviceType type) {
  const auto backend = find_backend(type);
  return backend && backend->count() > 0;
}

int cuda_device_count() {
  const auto backend = find_backend(c10::DeviceType::CUDA);
  return backend ? backend->count() : 0;
}

std::string no_gpu_reason() {
  if (const auto chosen = chosen_default(); chosen ? !chosen->is_cpu() : first_free().has_value()) return {};
  if (chosen_default()) return "the CPU was set as the default device";
  std::string reasons;
  for (const auto& backend : device_backends()) {
    if (backend->type() == c10::DeviceType::CPU) continue;
    const auto reason = backend->count() == 0
                            ? backend->no_device_reason()
                            : fmt::format("none of {} {} GPUs is free: each has less than {} MiB of memory left",
                                          backend->count(), backend->name(), least_free_bytes >> 20);
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  return reasons.empty() ? "no kind of GPU is registered" : reasons;
}

}  // namespace mpol
