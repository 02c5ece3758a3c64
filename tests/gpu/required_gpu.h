#pragma once

#include "catch.h"

#include <mpol_cpp/device/select.h>

namespace mpol::testing {

/// The first GPU; the test fails, with the reason, when there is none.
inline torch::Device required_gpu() {
  INFO(no_gpu_reason());
  REQUIRE(cuda_device_count() > 0);
  return torch::Device(torch::kCUDA, 0);
}

}  // namespace mpol::testing
