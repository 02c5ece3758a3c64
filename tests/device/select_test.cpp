#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/backends/cuda_absence.h>
#include <mpol_cpp/device/device_list.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/device/move.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/models/gridded_net.h>

#include "fake_backend.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

torch::Device cuda(int index) { return {torch::kCUDA, static_cast<torch::DeviceIndex>(index)}; }

/// Automatic requests choose by themselves again when the test is over.
struct DefaultRestored {
  ~DefaultRestored() { reset_default_device(); }
};

}  // namespace

TEST_CASE("device requests parse as on the command line", "[device][quick]") {
  using Kind = DeviceRequest::Kind;
  CHECK(DeviceRequest::parse("auto").kind() == Kind::automatic);
  CHECK(DeviceRequest::parse("cpu").kind() == Kind::cpu);
  CHECK(DeviceRequest::parse("cuda").index() == 0);
  CHECK(DeviceRequest::parse("cuda:3").index() == 3);
  CHECK(DeviceRequest::parse("cuda:3").type() == c10::DeviceType::CUDA);
  CHECK(DeviceRequest::parse("least-loaded").kind() == Kind::least_loaded);
  for (const auto* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "CPU", "cpu:0", "cuda:99999999999"}) {
    INFO(text);
    CHECK_THROWS_AS(DeviceRequest::parse(text), ValueError);
  }
}

TEST_CASE("the CPU is always there", "[device][quick]") {
  CHECK(select_device(DeviceRequest::cpu()) == torch::Device(torch::kCPU));
  CHECK(functional(c10::DeviceType::CPU));
  CHECK(compiled_in(c10::DeviceType::CPU));
  CHECK(unregister_backend(c10::DeviceType::CPU) == nullptr);
  CHECK(functional(c10::DeviceType::CPU));
}

TEST_CASE("without a GPU an automatic choice is the CPU, said once with the reason", "[device][quick]") {
  const Registered none(std::vector<FakeDevice>{});
  const Warnings warnings;
  CHECK_FALSE(functional(c10::DeviceType::CUDA));
  CHECK(compiled_in(c10::DeviceType::CUDA));
  for (int i = 0; i < 3; ++i) CHECK(select_device().is_cpu());
  REQUIRE(warnings.said().size() == 1);
  CHECK_THAT(warnings.said()[0], ContainsSubstring("the fake driver is asleep") && ContainsSubstring("CPU"));
  CHECK_THROWS_AS(select_device(DeviceRequest::automatic(), Fallback::error), DeviceError);
  CHECK(gpu_info().empty());
  CHECK(devices_by_load().empty());
}

TEST_CASE("one GPU is taken when it has memory free", "[device][quick]") {
  {
    const Registered one({FakeDevice{}});
    CHECK(select_device() == cuda(0));
    CHECK(select_device(DeviceRequest::least_loaded()) == cuda(0));
    CHECK(no_gpu_reason().empty());
    CHECK(functional(c10::DeviceType::CUDA));
  }
  const Registered busy({FakeDevice{.memory_in_use = 0.99}});
  const Warnings warnings;
  CHECK(select_device().is_cpu());
  CHECK(select_device().is_cpu());
  REQUIRE(warnings.said().size() == 1);
  CHECK_THAT(warnings.said()[0], ContainsSubstring("none of 1 cuda GPUs is free"));
  CHECK(select_device(DeviceRequest::cuda(0), Fallback::error) == cuda(0));  // who names it gets it
}

TEST_CASE("among three GPUs the first free one, the least loaded one, or the one that is named", "[device][quick]") {
  const Registered three({FakeDevice{.memory_in_use = 0.98, .processor_load = 1.0},
                          FakeDevice{.memory_in_use = 0.5, .processor_load = 0.2},
                          FakeDevice{.memory_in_use = 0.1, .processor_load = 0.1}});
  CHECK(select_device() == cuda(1));
  CHECK(select_device(DeviceRequest::least_loaded()) == cuda(2));
  CHECK(select_device(DeviceRequest::cuda(0)) == cuda(0));
  CHECK(cuda_device_count() == 3);
  try {
    select_device(DeviceRequest::cuda(3), Fallback::error);
    FAIL("no error");
  } catch (const DeviceError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("cuda:3") && ContainsSubstring("there are 3 GPUs") &&
                                 ContainsSubstring("devices here: cpu, cuda:0, cuda:1, cuda:2"));
  }
  const Warnings warnings;
  CHECK_THROWS_WITH(select_device(DeviceRequest::cuda(7)), ContainsSubstring("cuda:7"));  // never the CPU in its place
  CHECK_THROWS_AS(select_device(DeviceRequest::parse("cuda:3"), Fallback::warn), DeviceError);
  CHECK(warnings.said().empty());
}

TEST_CASE("moving anything to a device that is not there is one line that lists those that are", "[device][quick]") {
  const Registered none(std::vector<FakeDevice>{});
  auto tensor = torch::ones({2});
  auto module = GriddedNet(GridCoords(0.05, 4));
  const std::string says = "device cuda:0 is not there: the fake driver is asleep; devices here: cpu";
  CHECK_THROWS_AS(move_to(tensor, cuda(0)), DeviceError);
  CHECK_THROWS_WITH(move_to(tensor, cuda(0)), says);
  CHECK_THROWS_WITH(move_to(module, torch::kCUDA), says);
  CHECK_THROWS_WITH(module->to(cuda(0)), says);
  CHECK_THROWS_AS(check_device(torch::Device(c10::DeviceType::XLA, 0)), DeviceError);
  CHECK(tensor.is_cpu());
  CHECK(module->base().is_cpu());
  CHECK_NOTHROW(move_to(module, torch::kMeta));
}

TEST_CASE("a default device is what automatic requests give, until it is reset", "[device][quick]") {
  const Registered two({FakeDevice{}, FakeDevice{}});
  const DefaultRestored restored;
  set_default_device(cuda(1));
  CHECK(select_device() == cuda(1));
  set_default_device(torch::kCPU);
  CHECK(select_device().is_cpu());
  CHECK_FALSE(no_gpu_reason().empty());
  CHECK_THROWS_AS(set_default_device(cuda(2)), DeviceError);
  CHECK(select_device().is_cpu());
  reset_default_device();
  CHECK(select_device() == cuda(0));
}

TEST_CASE("another accelerator is known everywhere once it is registered", "[device][quick]") {
  const auto type = c10::DeviceType::PrivateUse1;
  CHECK_THROWS_AS(DeviceRequest::parse("tpu:1"), ValueError);
  CHECK_THROWS_AS(memory_info(torch::Device(type, 0)), DeviceError);
  {
    const Registered none(std::vector<FakeDevice>{});
    const Registered tpu(std::make_shared<FakeBackend>(std::vector<FakeDevice>{{.memory_in_use = 0.5}, {}}, type, "tpu"));
    CHECK(select_device() == torch::Device(type, 0));
    CHECK(select_device(DeviceRequest::parse("tpu:1"), Fallback::error) == torch::Device(type, 1));
    CHECK(select_device_by_load() == torch::Device(type, 1));
    CHECK(memory_info(torch::Device(type, 0)).free_bytes == std::int64_t{8} << 30);
    CHECK(gpu_info().size() == 2);
    CHECK_THROWS_WITH(DeviceRequest::parse("ipu"), ContainsSubstring("tpu:N"));
    CHECK_THROWS_WITH(select_device(DeviceRequest::parse("tpu:2"), Fallback::error), ContainsSubstring("tpu:1"));
  }
  CHECK_FALSE(functional(type));
  CHECK_THROWS_AS(register_backend(nullptr), ValueError);
}

TEST_CASE("the reason for no CUDA device says what to do", "[device][quick]") {
  using mpol::detail::cuda_absence_reason, mpol::detail::CudaProbe;
  CudaProbe probe;
  CHECK_THAT(cuda_absence_reason(probe), ContainsSubstring("build") && ContainsSubstring("no CUDA"));
  probe.compiled_in = true;
  CHECK_THAT(cuda_absence_reason(probe), ContainsSubstring("no NVIDIA driver"));
  probe.driver_there = true;
  probe.driver_version = 12040;
  probe.runtime_version = 13000;
  CHECK_THAT(cuda_absence_reason(probe), ContainsSubstring("too old") && ContainsSubstring("12.4") && ContainsSubstring("13.0"));
  probe.driver_version = 13010;
  CHECK_THAT(cuda_absence_reason(probe), ContainsSubstring("finds no usable GPU"));
  probe.visible_devices = "-1";
  probe.machine_gpus = 4;
  CHECK_THAT(cuda_absence_reason(probe), ContainsSubstring("CUDA_VISIBLE_DEVICES='-1'") && ContainsSubstring("of 4"));
  probe.visible_gpus = 1;  // it is shown, and still cannot be used
  CHECK_THAT(cuda_absence_reason(probe), ContainsSubstring("finds no usable GPU"));
}

TEST_CASE("several devices are named by a list, or are all that have memory free", "[device][quick]") {
  using List = std::vector<torch::Device>;
  CHECK(names_several_devices("all"));
  CHECK(names_several_devices("cpu,cpu"));
  CHECK_FALSE(names_several_devices("cuda:0"));
  CHECK(select_devices("cpu,cpu") == List{torch::kCPU, torch::kCPU});
  CHECK(select_devices("cpu") == List{torch::kCPU});
  CHECK(device_names(select_devices("cpu,cpu")) == "cpu,cpu");
  {
    const Registered some(std::vector<FakeDevice>{{.memory_in_use = 0.1}, {.memory_in_use = 1.0}, {.memory_in_use = 0.2}});
    CHECK(select_devices("all") == List{cuda(0), cuda(2)});  // cuda:1 has no memory free
    CHECK(select_devices("cuda:2,cpu,cuda:1") == List{cuda(2), torch::kCPU, cuda(1)});
    CHECK(select_devices("cuda,cpu") == List{cuda(0), torch::kCPU});
    CHECK(device_names({cuda(2), torch::kCPU}) == "cuda:2,cpu");
    CHECK_THROWS_WITH(select_devices("cuda:0,cuda:0"), ContainsSubstring("comes twice"));
    CHECK_THROWS_AS(select_devices("cuda:0,cuda:3"), DeviceError);
  }
  const Registered none(std::vector<FakeDevice>{});
  CHECK(select_devices("all") == List{torch::kCPU});
  for (const auto* text : {"cpu,all", "cpu,auto", "least-loaded,cpu", "cpu,", ",cpu", "cpu,gpu"}) {
    INFO(text);
    CHECK_THROWS_AS(select_devices(text), ValueError);
  }
}
