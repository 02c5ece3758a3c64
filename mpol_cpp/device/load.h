#pragma once

#include <vector>

#include <mpol_cpp/device/backends/backend.h>
#include <mpol_cpp/device/select.h>

namespace mpol {

/// Every visible GPU, in the order of the backends and their indices; empty without any. Names of a process's devices are
/// matched to the driver's own list by UUID, so that CUDA_VISIBLE_DEVICES is honoured.
std::vector<DeviceInfo> gpu_info();

/// Memory of a device, or of the machine for the CPU. @throws DeviceError when it is not there
DeviceMemory memory_info(torch::Device device);

/// How loaded a GPU is.
struct GpuLoad {
  torch::Device device;  ///< the GPU
  double load;           ///< 0 (idle) to 1
  double processor;      ///< fraction of time at work; 0 where nobody measures it
  double memory;         ///< fraction of its memory in use
};

/// Load of every visible GPU: (weight_processor * processor + weight_memory * memory) / (weight_processor + weight_memory).
/// Where the processor's load is not measured (without NVML), memory alone counts.
/// @throws ValueError unless the weights are finite, >= 0 and one of them > 0
std::vector<GpuLoad> gpu_load(double weight_processor = 0.5, double weight_memory = 0.5);

/// The GPUs from the least to the most loaded; of equal ones that with more free memory first.
std::vector<torch::Device> devices_by_load(double weight_processor = 0.5, double weight_memory = 0.5);

/// The least loaded GPU; as select_device() without any.
torch::Device select_device_by_load(double weight_processor = 0.5, double weight_memory = 0.5,
                                    Fallback fallback = Fallback::warn);

/// The GPUs of which at most these fractions of processor and memory are in use, in order of their load.
/// @throws ValueError unless both lie in [0, 1]
std::vector<torch::Device> available_gpus(double max_load = 0.5, double max_memory = 0.5);

}  // namespace mpol
