#pragma once

#include <optional>
#include <string>

namespace mpol::detail {

/// What can be found out about CUDA where it has no device.
struct CudaProbe {
  bool compiled_in = false;
  bool driver_there = false;
  int driver_version = 0;   // newest CUDA that the driver runs, 1000 * major + 10 * minor; 0 when it does not say
  int runtime_version = 0;  // the CUDA that LibTorch was built with
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES, when it is set
  int machine_gpus = 0;                        // GPUs of the machine, hidden ones included; 0 when nobody says
  int visible_gpus = 0;                        // those of them that CUDA_VISIBLE_DEVICES shows
};

/// Why CUDA has no device, in words that say what to do.
std::string cuda_absence_reason(const CudaProbe& probe);

}  // namespace mpol::detail
