#include <mpol_cpp/device/backends/cuda_absence.h>

#include <mpol_cpp/core/format.h>

namespace mpol::detail {
namespace {

std::string cuda_version_words(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

std::string cuda_absence_reason(const CudaProbe& probe) {
  if (!probe.compiled_in) return "this build of mpol_cpp has no CUDA";
  if (!probe.driver_there) return "there is no NVIDIA driver (libcuda.so.1)";
  if (probe.driver_version > 0 && probe.driver_version < probe.runtime_version) {
    return fmt::format("the NVIDIA driver is too old: it runs CUDA up to {} and this build needs {}",
                       cuda_version_words(probe.driver_version), cuda_version_words(probe.runtime_version));
  }
  if (probe.visible_devices && probe.visible_gpus == 0) {
    const auto gpus = probe.machine_gpus > 0 ? fmt::format(" of {}", probe.machine_gpus) : std::string();
    return fmt::format("CUDA_VISIBLE_DEVICES='{}' hides every GPU{}", *probe.visible_devices, gpus);
  }
  return "the NVIDIA driver finds no usable GPU";
}

}  // namespace mpol::detail
