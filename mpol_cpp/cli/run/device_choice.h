#pragma once

#include <string>

#include <torch/types.h>

#include <mpol_cpp/cli/image/image_options.h>

namespace mpol::cli {

/// A device, and how the program came to it.
struct ChosenDevice {
  torch::Device device;
  std::string reason;
};

/// The device for --device. That "auto" takes the CPU where there is no GPU is no reason for a warning: the closing words and
/// the summary say so.
/// @throws DeviceError for a device that is not there, and for more ranks than GPUs on a node
ChosenDevice choose_device(const ImageOptions& options);

}  // namespace mpol::cli
