#include <cstdio>
#include <new>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/ops/simd/isa.h>
#include <mpol_cpp/train/steps/step_timing.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp devices_help = {"devices", "List the devices that --device can name",
                                   "Example:\n  mpol devices --json\n  mpol devices --benchmark --npix 1024"};

struct DevicesOptions {
  bool benchmark = false, json = false;
  std::int64_t npix = 512, nchan = 1;
  torch::Dtype dtype = torch::kFloat32;
};

void declare(OptionSet& options, DevicesOptions& devices) {
  options.flag("--benchmark", devices.benchmark, "Time one step of a fit on each device", Record::none);
  options.integer("--npix", devices.npix, Range::between(2, 1 << 14), "Pixels along each axis of that fit", Record::none);
  options.integer("--nchan", devices.nchan, Range::between(1, 1 << 14), "Channels of that fit", Record::none);
  options.choice("--dtype", devices.dtype, dtype_choices, "Numbers of that fit", Record::none);
  options.flag("--json", devices.json, "As JSON on stdout", Record::none);
  options.only({"--npix", "--nchan", "--dtype"}, "with --benchmark", [&devices] { return devices.benchmark; });
}

/// One step at the size asked for, or why there is none.
struct Timing {
  std::optional<StepTime> time;
  std::string failure;
};

std::optional<Timing> timing_of(const DevicesOptions& options, torch::Device device) {
  if (!options.benchmark) return std::nullopt;
  const auto settings = StepTimingOptions().nchan(options.nchan).dtype(options.dtype);
  try {
    return Timing{time_step(options.npix, device, settings), {}};
  } catch (const c10::OutOfMemoryError&) {
    return Timing{std::nullopt, "out of memory"};
  } catch (const std::bad_alloc&) {
    return Timing{std::nullopt, "out of memory"};
  }
}

void add_timing(nlohmann::ordered_json& json, const DevicesOptions& options, torch::Device device) {
  const auto timing = timing_of(options, device);
  if (!timing) return;
  nlohmann::ordered_json step = {{"npix", options.npix},
                                 {"nchan", options.nchan},
                                 {"dtype", choice_name(options.dtype, dtype_choices)},
                                 {"seconds", nullptr}};
  if (timing->time) {
    step["seconds"] = timing->time->seconds;
    step["kind"] = to_string(timing->time->kind);
    step["kind_reason"] = timing->time->reason;
  } else {
    step["failure"] = timing->failure;
  }
  json["step"] = std::move(step);
}

std::string timing_words(const DevicesOptions& options, torch::Device device) {
  const auto timing = timing_of(options, device);
  if (!timing) return {};
  if (!timing->time) return fmt::format("{:<8} {}\n", "", timing->failure);
  const double seconds = timing->time->seconds;
  return fmt::format("{:<8} {:.3g} ms a step of {} x {} pixels{}, {} ({})\n", "", 1e3 * seconds, options.npix, options.npix,
                     options.nchan > 1 ? fmt::format(" and {} channels", options.nchan) : "",
                     choice_name(options.dtype, dtype_choices), to_string(timing->time->kind));
}

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

void print_devices(const DevicesOptions& options) {
  const auto print_row = [&](torch::Device device, const std::string& row) {
    fmt::print("{}", row);
    std::fflush(stdout);  // a step takes its time
    fmt::print("{}", timing_words(options, device));
  };
  print_row(torch::kCPU, table_row("cpu", memory_info(torch::kCPU), "",
                                   fmt::format("{} threads, {}", available_cpus(), to_string(selected_isa()))));
  for (const auto& gpu : gpu_info()) {
    const auto load = gpu.processor_load ? fmt::format("{:.0f}% busy", 100 * *gpu.processor_load) : std::string();
    print_row(gpu.device, table_row(gpu.device.str(), gpu.memory, load, gpu.name + " " + gpu.uuid));
  }
  if (const auto reason = no_gpu_reason(); !reason.empty()) fmt::print("no GPU: {}\n", reason);
}

int list_devices(const DevicesOptions& options, const OptionSet& settings) {
  settings.check_meaning();
  if (options.npix % 2 != 0) {
    throw UsageError(error_text("--npix", fmt::format("{}", options.npix), "images have an even number of pixels",
                                fmt::format("take {}", options.npix + 1)));
  }
  if (options.benchmark) use_threads(std::nullopt);
  if (!options.json) {
    print_devices(options);
    return exit_done;
  }
  nlohmann::ordered_json devices = {describe_cpu()};
  add_timing(devices.back(), options, torch::kCPU);
  for (const auto& gpu : gpu_info()) {
    devices.push_back(describe_gpu(gpu));
    add_timing(devices.back(), options, gpu.device);
  }
  fmt::print("{}\n", devices.dump(2));
  return exit_done;
}

}  // namespace

Verb add_devices(CLI::App& program) { return add_verb<DevicesOptions>(program, devices_help, list_devices); }

}  // namespace mpol::cli
