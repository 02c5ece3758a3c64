#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/memory.h>
#include <mpol_cpp/cli/threads.h>
#include <mpol_cpp/cli/verb.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/cuda_memory.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/ops/isa.h>

namespace mpol::cli {
namespace {

nlohmann::ordered_json describe_devices() {
  auto devices = nlohmann::ordered_json::array();
  nlohmann::ordered_json cpu = {
      {"device", "cpu"}, {"threads", available_cpus()}, {"instruction_set", std::string(to_string(selected_isa()))}};
  if (const auto memory = available_memory()) cpu["free_bytes"] = static_cast<std::int64_t>(*memory);
  devices.push_back(cpu);
  for (int index = 0; index < cuda_device_count(); ++index) {
    devices.push_back({{"device", fmt::format("cuda:{}", index)}, {"free_bytes", detail::cuda_free_bytes(index)}});
  }
  return devices;
}

int list_devices(bool json) {
  const auto devices = describe_devices();
  if (json) {
    fmt::print("{}\n", devices.dump(2));
    return exit_done;
  }
  for (const auto& device : devices) {
    const auto name = device["device"].get<std::string>();
    const auto memory = device.contains("free_bytes") ? memory_words(device["free_bytes"].get<double>()) + " free" : "";
    if (name == "cpu") {
      fmt::print("{:<8} {} threads, {}, {}\n", name, device["threads"].get<int>(), device["instruction_set"].get<std::string>(),
                 memory);
    } else {
      fmt::print("{:<8} {}\n", name, memory);
    }
  }
  if (devices.size() == 1) fmt::print("no GPU: {}\n", no_gpu_reason());
  return exit_done;
}

}  // namespace

Verb add_devices(CLI::App& program) {
  auto* app = program.add_subcommand("devices", "List the devices that --device can name");
  app->footer("Example:\n  mpol devices --json");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "As JSON on stdout");
  return {app, [json] { return list_devices(*json); }};
}

}  // namespace mpol::cli
