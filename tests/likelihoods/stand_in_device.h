#pragma once

#include <torch/types.h>

namespace mpol::testing {

/// A device of LibTorch's type PrivateUse1 that stands in for an accelerator without kernels of ours: its tensors lie in host
/// memory, but nobody may look at them as the CPU's, and each operation brings its tensors to the CPU and back.
torch::Device stand_in_device();

/// Operations that it has done so far.
std::int64_t operations_of_stand_in();

}  // namespace mpol::testing
