#pragma once

#include "catch.h"

#include <mpol_cpp/device/precision.h>
#include <mpol_cpp/device/select.h>

namespace mpol::testing {

/// The first GPU; the test fails, with the reason, when there is none.
inline torch::Device required_gpu() {
  INFO(no_gpu_reason());
  REQUIRE(cuda_device_count() > 0);
  return torch::Device(torch::kCUDA, 0);
}

/// While it lives nothing is chosen by how fast it is, so that two steps of one kind may be compared to the bit.
class SameBits {
 public:
  SameBits() { set_deterministic(true); }
  ~SameBits() { set_deterministic(false); }
  SameBits(const SameBits&) = delete;
  SameBits& operator=(const SameBits&) = delete;
};

}  // namespace mpol::testing
