#include <mpol_cpp/device/host_memory.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <unistd.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/backend.h>

namespace mpol {
namespace {

std::optional<double> meminfo_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return std::nullopt;
}

std::optional<double> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  double value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

std::optional<double> group_available() {
  const std::filesystem::path version_2 = "/sys/fs/cgroup", version_1 = "/sys/fs/cgroup/memory";
  auto limit = number_in(version_2 / "memory.max");
  auto used = number_in(version_2 / "memory.current");
  if (!limit) {
    limit = number_in(version_1 / "memory.limit_in_bytes");
    used = number_in(version_1 / "memory.usage_in_bytes");
  }
  if (!limit || !used) return std::nullopt;
  return std::max(0.0, *limit - *used);
}

/// The machine itself: always there.
class CpuBackend : public DeviceBackend {
 public:
  std::string name() const override { return "cpu"; }
  c10::DeviceType type() const override { return c10::DeviceType::CPU; }
  bool compiled_in() const override { return true; }
  int count() const override { return 1; }
  std::string no_device_reason() const override { return {}; }
  DeviceInfo info(int index) const override {
    DeviceInfo info;
    info.name = "CPU";
    info.memory = memory(index);
    return info;
  }
  DeviceMemory memory(int) const override {
    const auto pages = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES));
    const auto page_bytes = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
    return {pages * page_bytes, static_cast<std::int64_t>(available_memory().value_or(0))};
  }
};

}  // namespace

std::optional<double> available_memory() {
  const auto machine = meminfo_available(), group = group_available();
  if (machine && group) return std::min(*machine, *group);
  return machine ? machine : group;
}

std::string memory_words(double bytes) {
  if (bytes >= 0x1p40) return fmt::format("{:.1f} TiB", bytes / 0x1p40);
  if (bytes >= 0x1p30) return fmt::format("{:.1f} GiB", bytes / 0x1p30);
  if (bytes >= 0x1p20) return fmt::format("{:.0f} MiB", bytes / 0x1p20);
  return bytes >= 0x1p10 ? fmt::format("{:.0f} KiB", bytes / 0x1p10) : fmt::format("{:.0f} bytes", bytes);
}

std::shared_ptr<const DeviceBackend> detail::make_cpu_backend() { return std::make_shared<CpuBackend>(); }

}  // namespace mpol
