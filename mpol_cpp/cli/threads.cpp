#include <mpol_cpp/cli/threads.h>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <ATen/Parallel.h>

namespace mpol::cli {
namespace {

std::int64_t affinity_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The path of this process's control group below the mount point, for a line "hierarchy:controllers:path".
std::string group_path(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    if (controller.empty() && second == first + 1) return line.substr(second + 1);
    for (std::string name; std::getline(controllers, name, ',');) {
      if (!controller.empty() && name == controller) return line.substr(second + 1);
    }
  }
  return "/";
}

/// The smallest quota on the way from the group up to the mount point: a parent's limit binds too.
template <typename QuotaAt>
std::optional<double> smallest_quota(const std::filesystem::path& mount, const std::string& group, QuotaAt quota_at) {
  std::optional<double> smallest;
  auto relative = std::filesystem::path(group).relative_path();
  while (true) {
    if (const auto quota = quota_at(mount / relative)) smallest = std::min(*quota, smallest.value_or(*quota));
    if (relative.empty()) return smallest;
    relative = relative.parent_path();
  }
}

std::optional<double> quota_cpus() {
  const auto version_2 = smallest_quota("/sys/fs/cgroup", group_path(""), [](const std::filesystem::path& folder) {
    return quota_of_cpu_max(first_line(folder / "cpu.max"));
  });
  if (version_2) return version_2;
  return smallest_quota("/sys/fs/cgroup/cpu", group_path("cpu"), [](const std::filesystem::path& folder) {
    return quota_of_cfs(first_line(folder / "cpu.cfs_quota_us"), first_line(folder / "cpu.cfs_period_us"));
  });
}

}  // namespace

std::optional<double> quota_of_cfs(const std::string& quota_us, const std::string& period_us) {
  double quota = 0, period = 0;
  if (!(std::istringstream(quota_us) >> quota) || !(std::istringstream(period_us) >> period)) return std::nullopt;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> quota_of_cpu_max(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  std::string quota, period;
  words >> quota >> period;
  if (quota == "max") return std::nullopt;
  return quota_of_cfs(quota, period);
}

std::int64_t available_cpus() {
  const auto affinity = affinity_cpus();
  const auto quota = quota_cpus();
  if (!quota) return affinity;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(*quota)), 1, affinity);
}

std::int64_t use_threads(std::optional<std::int64_t> threads) {
  const auto number = threads.value_or(available_cpus());
  at::set_num_threads(static_cast<int>(number));
  return number;
}

}  // namespace mpol::cli
