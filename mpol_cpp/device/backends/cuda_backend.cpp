#include <dlfcn.h>

#include <cstdlib>

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/backends/backend.h>
#include <mpol_cpp/device/backends/cuda_absence.h>
#include <mpol_cpp/device/backends/cuda_memory.h>
#include <mpol_cpp/device/backends/nvml.h>

namespace mpol::detail {
namespace {

bool has_cuda_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) ::dlclose(library);
  return library != nullptr;
}

/// CUDA through LibTorch, and through NVML for what costs no context there.
class CudaBackend : public DeviceBackend {
 public:
  std::string name() const override { return "cuda"; }
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  bool compiled_in() const override { return compiled_with_cuda; }

  int count() const override {
    if (!at::globalContext().hasCUDA()) return 0;
    const auto* guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(type())].load();
    return guard != nullptr ? static_cast<int>(guard->deviceCount()) : 0;
  }

  std::string no_device_reason() const override {
    if (count() > 0) return {};
    CudaProbe probe;
    probe.compiled_in = compiled_with_cuda;
    probe.driver_there = has_cuda_driver();
    probe.driver_version = cuda_driver_version();
    probe.runtime_version = cuda_runtime_version();
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) probe.visible_devices = visible;
    const auto gpus = nvml_gpus();
    probe.machine_gpus = static_cast<int>(gpus.size());
    probe.visible_gpus = static_cast<int>(visible_gpus(gpus, probe.visible_devices).size());
    return cuda_absence_reason(probe);
  }

  DeviceInfo info(int index) const override {
    auto info = cuda_properties(index);
    info.driver = nvml_driver();
    const auto gpu = find_gpu(nvml_gpus(), info.uuid, info.pci_id);
    if (gpu) info.processor_load = gpu->processor_load;
    info.memory = memory_of(index, gpu);
    return info;
  }

  DeviceMemory memory(int index) const override {
    const auto properties = cuda_properties(index);
    return memory_of(index, find_gpu(nvml_gpus(), properties.uuid, properties.pci_id));
  }

 private:
  /// NVML's numbers where they are of the whole device; CUDA's own else, as for a part of a GPU, which has fewer bytes.
  static DeviceMemory memory_of(int index, const std::optional<NvmlGpu>& gpu) {
    if (gpu && gpu->total_bytes > 0 && same_uuid(index, *gpu)) return {gpu->total_bytes, gpu->free_bytes};
    return cuda_memory(index);
  }
  static bool same_uuid(int index, const NvmlGpu& gpu) { return cuda_properties(index).uuid == gpu.uuid; }
};

}  // namespace

std::shared_ptr<const DeviceBackend> make_cuda_backend() { return std::make_shared<CudaBackend>(); }

}  // namespace mpol::detail
