#include <mpol_cpp/device/host/host_memory.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include <sys/resource.h>
#include <unistd.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/backends/backend.h>
#include <mpol_cpp/device/host/control_group.h>

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

/// What `ulimit -v`, which some batch systems set, leaves of the address space.
std::optional<double> address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages;
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - pages * static_cast<double>(::sysconf(_SC_PAGESIZE)));
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
  std::optional<double> least;
  for (const auto& room : {meminfo_available(), control_group_memory(), address_space_left()}) {
    if (room) least = std::min(*room, least.value_or(*room));
  }
  return least;
}

std::string memory_words(double bytes) {
  if (bytes >= 0x1p40) return fmt::format("{:.1f} TiB", bytes / 0x1p40);
  if (bytes >= 0x1p30) return fmt::format("{:.1f} GiB", bytes / 0x1p30);
  if (bytes >= 0x1p20) return fmt::format("{:.0f} MiB", bytes / 0x1p20);
  return bytes >= 0x1p10 ? fmt::format("{:.0f} KiB", bytes / 0x1p10) : fmt::format("{:.0f} bytes", bytes);
}

std::shared_ptr<const DeviceBackend> detail::make_cpu_backend() { return std::make_shared<CpuBackend>(); }

}  // namespace mpol
