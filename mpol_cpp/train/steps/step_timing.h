#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/train/options/train_options.h>

namespace mpol {

/// What is timed by time_step.
struct StepTimingOptions {
  StepTimingOptions() = default;
  TORCH_ARG(std::int64_t, nchan) = 1;                ///< channels of the image
  TORCH_ARG(torch::Dtype, dtype) = torch::kFloat32;  ///< of the fit
  TORCH_ARG(double, least_seconds) = 0.5;            ///< that are measured, in steps that follow each other
};

/// How long a step takes.
struct StepTime {
  double seconds = 0;               ///< of one step, the mean of those measured
  std::int64_t steps = 0;           ///< that were measured
  StepKind kind = StepKind::eager;  ///< of step that was taken, the fastest that applies
  std::string reason;               ///< why
};

/// Times a step of Adam on a device: the exact likelihood, whose cost does not depend on the number of visibilities, with
/// sparsity and total variation, of simulated data. The first steps, which compile and allocate, do not count.
/// @param npix  pixels of an axis
/// @throws ValueError for sizes that no grid has; DeviceError when the device is not there; c10::OutOfMemoryError
StepTime time_step(std::int64_t npix, torch::Device device, const StepTimingOptions& options = {});

/// How fast devices are beside each other, the fastest kind having 1. Devices of one type and name are equally fast, of which one
/// is measured by time_step; nothing is measured where all are. A CPU that comes more than once is divided.
/// @throws as time_step()
std::vector<double> relative_speeds(std::int64_t npix, const std::vector<torch::Device>& devices,
                                    const StepTimingOptions& options = {});

}  // namespace mpol
