#include "catch.h"

#include <ATen/ops/ones.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/current_device.h>
#include <mpol_cpp/device/device_memory.h>
#include <mpol_cpp/device/select.h>

using namespace mpol;

// Not among the quick tests, which sanitizers run: theirs keep what is freed.
TEST_CASE("memory of this process on the CPU: now and at its peak", "[device]") {
  constexpr std::int64_t bytes = std::int64_t{64} << 20, slack = std::int64_t{8} << 20;
  reset_peak_memory(torch::kCPU);
  const auto before = memory_use(torch::kCPU);
  CHECK(before.in_use > 0);
  CHECK(before.peak >= before.in_use);
  {
    const auto array = at::ones({bytes / 4}, torch::kFloat32);
    CHECK(memory_use(torch::kCPU).in_use > before.in_use + bytes - slack);
  }
  const auto after = memory_use(torch::kCPU);
  CHECK(after.in_use < before.in_use + slack);
  CHECK(after.peak > before.in_use + bytes - slack);
  reset_peak_memory(torch::kCPU);
  CHECK(memory_use(torch::kCPU).peak < before.in_use + slack);
  empty_cache(torch::kCPU);
  CHECK(memory_use(torch::kMeta).in_use == 0);
}

TEST_CASE("what is asked of a device that is not there is an error", "[device][quick]") {
  if (functional(c10::DeviceType::CUDA)) return;
  const torch::Device gpu(torch::kCUDA, 0);
  CHECK_THROWS_AS(memory_use(gpu), DeviceError);
  CHECK_THROWS_AS(reset_peak_memory(gpu), DeviceError);
  CHECK_THROWS_AS(empty_cache(gpu), DeviceError);
  CHECK_THROWS_AS(current_device(c10::DeviceType::CUDA), DeviceError);
  CHECK_THROWS_AS(CurrentDevice(gpu), DeviceError);
  CHECK(current_device(c10::DeviceType::CPU).is_cpu());
  const CurrentDevice here(torch::kCPU);
}
