#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/device/select.h>

namespace mpol {

/// Whether a text asks for several devices: "all", or names with commas between them.
bool names_several_devices(std::string_view text);

/// The devices that a text names:
///   "all"            every GPU that has memory free, in the order of backends and indices; the CPU where there is none
///   "cuda:0,cuda:1"  these, in this order; "cpu" may come more than once, each for its part of the threads
///   anything else    the one device of DeviceRequest::parse(text)
/// @throws ValueError for a name that is none, for "auto" and the like in a list, and for a GPU that comes twice; DeviceError for
///         a device that is not there
std::vector<torch::Device> select_devices(std::string_view text);

/// The names with commas between them, as select_devices() takes them.
std::string device_names(const std::vector<torch::Device>& devices);

}  // namespace mpol
