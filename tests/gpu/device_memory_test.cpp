// Run by hand or by scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <ATen/ops/empty.h>

#include <mpol_cpp/device/current_device.h>
#include <mpol_cpp/device/device_memory.h>

#include "required_gpu.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("memory of tensors on a GPU, its peak, and what is given back", "[gpu][device]") {
  const auto gpu = required_gpu();
  constexpr std::int64_t bytes = std::int64_t{256} << 20;
  const auto options = at::TensorOptions(torch::kUInt8).device(gpu);
  at::empty({1}, options);
  empty_cache(gpu);
  reset_peak_memory(gpu);
  const auto before = memory_use(gpu);
  {
    const auto array = at::empty({bytes}, options);
    CHECK(memory_use(gpu).in_use == before.in_use + bytes);
  }
  CHECK(memory_use(gpu).in_use == before.in_use);
  CHECK(memory_use(gpu).peak == before.in_use + bytes);
  CHECK(memory_use(gpu).reserved >= bytes);
  empty_cache(gpu);
  CHECK(memory_use(gpu).reserved < bytes);
}

TEST_CASE("a GPU is the current one while somebody says so", "[gpu][device]") {
  const auto gpu = required_gpu();
  const auto before = current_device(gpu.type());
  {
    const CurrentDevice now(gpu);
    CHECK(current_device(gpu.type()) == gpu);
    CHECK(at::empty({1}, at::TensorOptions().device(torch::Device(gpu.type()))).device() == gpu);
  }
  CHECK(current_device(gpu.type()) == before);
}
