#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

namespace mpol::cli {

/// A device, and how the program came to it.
struct ChosenDevice {
  torch::Device device;
  std::string reason;
  std::vector<torch::Device> all = {device};  ///< that were asked for: more than one where they share the run
  bool is_asked_for = false;                  ///< which is the reason

  bool are_several() const { return all.size() > 1; }
  std::string names() const;  ///< of all, with commas between them
};

/// The device for --device, or several. That "auto" takes the CPU where there is no GPU is no reason for a warning: the closing
/// words and the summary say so.
/// @throws DeviceError for a device that is not there, and for more ranks than GPUs on a node; UsageError for several devices on
///         each of several ranks
ChosenDevice choose_device(const std::string& text);

/// The device for --device of a verb that computes on one. @throws UsageError for several; else as choose_device()
ChosenDevice choose_one_device(const std::string& text);

}  // namespace mpol::cli
