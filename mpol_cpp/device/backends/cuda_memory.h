#pragma once

#include <cstdint>

#include <mpol_cpp/device/backends/backend.h>

namespace mpol::detail {

#ifdef MPOL_WITH_CUDA
inline constexpr bool compiled_with_cuda = true;
#else
inline constexpr bool compiled_with_cuda = false;
#endif

// What the CUDA runtime says; zeros and empty texts in a build without CUDA.

/// Memory of a device as its driver reports it; makes a context on the device.
DeviceMemory cuda_memory(int index);
/// Name, UUID, PCI id and compute capability of a device; makes no context.
DeviceInfo cuda_properties(int index);
/// Newest CUDA that the driver runs, and the CUDA of the runtime: 1000 * major + 10 * minor.
int cuda_driver_version();
int cuda_runtime_version();

}  // namespace mpol::detail
