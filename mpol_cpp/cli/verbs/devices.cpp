#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/ops/simd/isa.h>

namespace mpol::cli {
namespace {

nlohmann::ordered_json describe_cpu() {
  const auto memory = memory_info(torch::kCPU);
  return {{"device", "cpu"},
          {"threads", available_cpus()},
          {"instruction_set", std::string(to_string(selected_isa()))},
          {"total_bytes", memory.total_bytes},
          {"free_bytes", memory.free_bytes},
          {"no_gpu_reason", no_gpu_reason().empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(no_gpu_reason())}};
}

nlohmann::ordered_json describe_gpu(const DeviceInfo& gpu) {
  nlohmann::ordered_json json = {{"device", gpu.device.str()},
                                 {"name", gpu.name},
                                 {"uuid", gpu.uuid},
                                 {"pci_id", gpu.pci_id},
                                 {"driver", gpu.driver},
                                 {"compute_capability", gpu.capability},
                                 {"total_bytes", gpu.memory.total_bytes},
                                 {"free_bytes", gpu.memory.free_bytes},
                                 {"processor_load", nullptr}};
  if (gpu.processor_load) json["processor_load"] = *gpu.processor_load;
  return json;
}

std::string table_row(const std::string& device, const DeviceMemory& memory, const std::string& load, const std::string& what) {
  return fmt::format("{:<8} {:>9} free of {:>9} {:>9}  {}\n", device, memory_words(static_cast<double>(memory.free_bytes)),
                     memory_words(static_cast<double>(memory.total_bytes)), load, what);
}

std::string device_table() {
  auto table =
      table_row("cpu", memory_info(torch::kCPU), "", fmt::format("{} threads, {}", available_cpus(), to_string(selected_isa())));
  for (const auto& gpu : gpu_info()) {
    const auto load = gpu.processor_load ? fmt::format("{:.0f}% busy", 100 * *gpu.processor_load) : std::string();
    table += table_row(gpu.device.str(), gpu.memory, load, gpu.name + " " + gpu.uuid);
  }
  const auto reason = no_gpu_reason();
  return reason.empty() ? table : table + fmt::format("no GPU: {}\n", reason);
}

int list_devices(bool as_json) {
  if (!as_json) {
    fmt::print("{}", device_table());
    return exit_done;
  }
  nlohmann::ordered_json devices = {describe_cpu()};
  for (const auto& gpu : gpu_info()) devices.push_back(describe_gpu(gpu));
  fmt::print("{}\n", devices.dump(2));
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
