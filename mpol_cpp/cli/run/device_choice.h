#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/image/image_options.h>

namespace mpol::cli {

/// A device, and how the program came to it.
struct ChosenDevice {
  torch::Device device;
  std::string reason;
  std::vector<torch::Device> all = {device};  ///< that were asked for: more than one where they share the run

  bool are_several() const { return all.size() > 1; }
  std::string names() const;  ///< of all, with commas between them
};

/// The device for --device. That "auto" takes the CPU where there is no GPU is no reason for a warning: the closing words and
/// the summary say so.
/// @throws DeviceError for a device that is not there, and for more ranks than GPUs on a node; UsageError for several devices on
///         each of several ranks
ChosenDevice choose_device(const ImageOptions& options);

}  // namespace mpol::cli
