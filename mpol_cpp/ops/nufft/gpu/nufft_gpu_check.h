#pragma once

#include <torch/types.h>

namespace mpol::ops {

/// By how much small transforms of each type on a device differ from those of the CPU, relative to their largest value, after
/// waiting for the device; NaN where they are not numbers. Every GPU is new to kernels that were proven in an emulation.
template <typename T>
double nufft_device_error(torch::Device device, double tolerance);

/// The same as an exception, the first time for each device, dtype and width of kernels in a process. @throws DeviceError where
/// that is more than ten times the tolerance and rounding
template <typename T>
void check_nufft_device(torch::Device device, double tolerance);

}  // namespace mpol::ops
