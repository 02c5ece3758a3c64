#pragma once

#include <functional>
#include <string>

#include <torch/types.h>

namespace mpol::ops {

/// Whether kernels of ours may be used on a device: what `agrees` says of them there, asked once for each device and name. Where
/// they may not, a warning says that LibTorch's operations are used instead. The first call is not to be in a recording.
/// @param kernels  what they compute, for the warning
bool trusted_on(torch::Device device, const std::string& kernels, const std::function<bool(torch::Device)>& agrees);

}  // namespace mpol::ops
