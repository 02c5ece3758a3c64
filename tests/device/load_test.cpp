#include "catch.h"

#include <limits>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/load.h>

#include "fake_backend.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

std::vector<int> indices(const std::vector<torch::Device>& devices) {
  std::vector<int> list;
  list.reserve(devices.size());
  for (const auto& device : devices) list.push_back(device.index());
  return list;
}

}  // namespace

TEST_CASE("load weighs processor and memory as it is told", "[device][quick]") {
  const Registered gpus({FakeDevice{.memory_in_use = 0.75, .processor_load = 0.0},
                         FakeDevice{.memory_in_use = 0.25, .processor_load = 1.0},
                         FakeDevice{.memory_in_use = 0.5, .processor_load = 0.25}});
  const auto loads = gpu_load(3, 1);
  REQUIRE(loads.size() == 3);
  CHECK_THAT(loads[0].load, WithinAbs(0.1875, 1e-9));
  CHECK_THAT(loads[1].load, WithinAbs(0.8125, 1e-9));
  CHECK_THAT(loads[2].memory, WithinAbs(0.5, 1e-9));
  CHECK(indices(devices_by_load(1, 0)) == std::vector<int>{0, 2, 1});
  CHECK(indices(devices_by_load(0, 1)) == std::vector<int>{1, 2, 0});
  CHECK(select_device_by_load(0, 1).index() == 1);
  for (const auto bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(gpu_load(bad, 1), ValueError);
    CHECK_THROWS_AS(devices_by_load(1, bad), ValueError);
  }
  CHECK_THROWS_AS(gpu_load(0, 0), ValueError);
}

TEST_CASE("where nobody measures the processor, memory alone decides", "[device][quick]") {
  const Registered gpus({FakeDevice{.memory_in_use = 0.6, .processor_load = std::nullopt},
                         FakeDevice{.memory_in_use = 0.2, .processor_load = std::nullopt}});
  CHECK_THAT(gpu_load(1, 0)[0].load, WithinAbs(0.6, 1e-9));
  CHECK(indices(devices_by_load(1, 0)) == std::vector<int>{1, 0});
}

TEST_CASE("GPUs are available that are idle and have memory", "[device][quick]") {
  const Registered gpus(
      {FakeDevice{.memory_in_use = 0.9, .processor_load = 0.0}, FakeDevice{.memory_in_use = 0.4, .processor_load = 0.3},
       FakeDevice{.memory_in_use = 0.1, .processor_load = 0.1}, FakeDevice{.memory_in_use = 0.1, .processor_load = 0.8}});
  CHECK(indices(available_gpus()) == std::vector<int>{2, 1});
  CHECK(indices(available_gpus(1, 1)).size() == 4);
  CHECK(available_gpus(0.05, 0.5).empty());
  CHECK_THROWS_AS(available_gpus(1.5, 0.5), ValueError);
  CHECK_THROWS_AS(available_gpus(0.5, -0.1), ValueError);
}

TEST_CASE("information and memory of each GPU", "[device][quick]") {
  const Registered gpus({FakeDevice{}, FakeDevice{.memory_in_use = 0.25}});
  const auto info = gpu_info();
  REQUIRE(info.size() == 2);
  CHECK(info[1].index == 1);
  CHECK(info[1].name == "Fake 1");
  CHECK(memory_info(info[1].device).free_bytes == std::int64_t{12} << 30);
  CHECK_THROWS_AS(memory_info(torch::Device(torch::kCUDA, 2)), DeviceError);
  const auto machine = memory_info(torch::kCPU);
  CHECK(machine.total_bytes > 0);
  CHECK(machine.free_bytes > 0);
  CHECK(machine.free_bytes <= machine.total_bytes);
}
