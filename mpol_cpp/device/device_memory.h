#pragma once

#include <cstdint>

#include <torch/types.h>

namespace mpol {

/// Memory that this process takes of a device, bytes: of a GPU what its tensors take, of the CPU its resident pages. 0 where
/// LibTorch does not count.
struct MemoryUse {
  std::int64_t in_use = 0;    ///< now
  std::int64_t peak = 0;      ///< the most since the beginning, or since reset_peak_memory
  std::int64_t reserved = 0;  ///< now, with what the allocator keeps for later tensors
};

/// What this process takes of a device. Nothing waits for the device. @throws DeviceError when it is not there
MemoryUse memory_use(torch::Device device);

/// From now on the peak counts anew. @throws DeviceError when the device is not there
void reset_peak_memory(torch::Device device);

/// Gives back to a GPU's driver what LibTorch's allocator keeps for later tensors, so that other programs can have it; on the
/// CPU, where nothing is kept, does nothing. Fits are not faster for it. @throws DeviceError when the device is not there
void empty_cache(torch::Device device);

}  // namespace mpol
