#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mpol::detail {

/// One GPU of the machine as NVIDIA's management library sees it, whether CUDA_VISIBLE_DEVICES shows it or not.
struct NvmlGpu {
  std::string name, uuid, pci_id;
  std::int64_t total_bytes = 0, free_bytes = 0;
  std::optional<double> processor_load;  // fraction of time at work, 0 to 1
};

/// The GPUs of the machine in NVML's order (by PCI id). NVML (libnvidia-ml.so.1, part of the driver) is opened at run
/// time and costs no CUDA context. Empty where it is not there.
std::vector<NvmlGpu> nvml_gpus();
/// Version of the driver, such as "580.65.06"; empty without NVML.
std::string nvml_driver();

/// The GPU of a UUID or, when none has it (as of a part of a GPU), of a PCI id; empty texts match nothing.
std::optional<NvmlGpu> find_gpu(const std::vector<NvmlGpu>& gpus, std::string_view uuid, std::string_view pci_id);

/// Which of `gpus` a value of CUDA_VISIBLE_DEVICES shows, in its order: numbers (with CUDA_DEVICE_ORDER=PCI_BUS_ID) or
/// beginnings of UUIDs. As in CUDA, what follows the first entry that names no GPU is hidden.
/// @param visible  empty optional when the variable is not set: all of them
std::vector<std::size_t> visible_gpus(const std::vector<NvmlGpu>& gpus, std::optional<std::string_view> visible);

}  // namespace mpol::detail
