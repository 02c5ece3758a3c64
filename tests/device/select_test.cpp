#include "catch.h"

#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/select.h>

using namespace mpol;

TEST_CASE("device requests parse as on the command line", "[device][quick]") {
  using Kind = DeviceRequest::Kind;
  CHECK(DeviceRequest::parse("auto").kind() == Kind::automatic);
  CHECK(DeviceRequest::parse("cpu").kind() == Kind::cpu);
  CHECK(DeviceRequest::parse("cuda").index() == 0);
  CHECK(DeviceRequest::parse("cuda:3").index() == 3);
  CHECK(DeviceRequest::parse("least-loaded").kind() == Kind::least_loaded);
  for (const auto* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "CPU"}) {
    INFO(text);
    CHECK_THROWS_AS(DeviceRequest::parse(text), ValueError);
  }
}

TEST_CASE("the CPU is always there", "[device][quick]") {
  CHECK(select_device(DeviceRequest::cpu()) == torch::Device(torch::kCPU));
}

TEST_CASE("a device that is not there is an error or, where asked, the CPU said once", "[device][quick]") {
  const int missing = cuda_device_count() + 7;
  try {
    select_device(DeviceRequest::cuda(missing), Fallback::error);
    FAIL("no error");
  } catch (const DeviceError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("cuda:" + std::to_string(missing)) && ContainsSubstring("devices here: cpu"));
  }
  std::vector<std::string> said;
  const auto previous = set_log_sink([&](LogLevel, std::string_view message) { said.emplace_back(message); });
  for (int i = 0; i < 3; ++i) CHECK(select_device(DeviceRequest::cuda(missing), Fallback::warn).is_cpu());
  set_log_sink(previous);
  CHECK(said.size() <= 1);
}

TEST_CASE("without a usable GPU an automatic choice is the CPU, with a reason", "[device][quick]") {
  if (cuda_device_count() > 0) {
    CHECK(select_device().is_cuda());
    CHECK(no_gpu_reason().empty());
  } else {
    CHECK(select_device().is_cpu());
    CHECK_FALSE(no_gpu_reason().empty());
  }
}
