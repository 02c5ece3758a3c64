#include <mpol_cpp/device/backends/backend.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include <mpol_cpp/core/error.h>

namespace mpol {
namespace {

/// The backends of the process: what is registered once serves every caller, as LibTorch's own registries do.
struct BackendRegistry {
  std::mutex mutex;
  std::vector<std::shared_ptr<const DeviceBackend>> backends = {detail::make_cuda_backend()};

  BackendRegistry() {
    const auto others = detail::make_accelerator_backends();
    backends.insert(backends.end(), others.begin(), others.end());
    backends.push_back(detail::make_cpu_backend());
  }

  auto find(c10::DeviceType type) {
    return std::find_if(backends.begin(), backends.end(), [type](const auto& backend) { return backend->type() == type; });
  }
};

BackendRegistry& backend_registry() {
  static BackendRegistry registry;
  return registry;
}

}  // namespace

std::shared_ptr<const DeviceBackend> register_backend(std::shared_ptr<const DeviceBackend> backend) {
  if (!backend) throw ValueError("a device backend is a null pointer: register an object");
  auto& registry = backend_registry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.find(backend->type());
  if (found != registry.backends.end()) return std::exchange(*found, std::move(backend));
  registry.backends.insert(registry.backends.begin(), std::move(backend));
  return nullptr;
}

std::shared_ptr<const DeviceBackend> unregister_backend(c10::DeviceType type) {
  auto& registry = backend_registry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.find(type);
  if (type == c10::DeviceType::CPU || found == registry.backends.end()) return nullptr;
  auto backend = *found;
  registry.backends.erase(found);
  return backend;
}

std::vector<std::shared_ptr<const DeviceBackend>> device_backends() {
  auto& registry = backend_registry();
  const std::lock_guard lock(registry.mutex);
  return registry.backends;
}

std::shared_ptr<const DeviceBackend> find_backend(c10::DeviceType type) {
  auto& registry = backend_registry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.find(type);
  return found != registry.backends.end() ? *found : nullptr;
}

}  // namespace mpol
