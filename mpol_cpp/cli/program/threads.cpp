#include <mpol_cpp/cli/program/threads.h>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <ATen/Parallel.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/device/host/control_group.h>
#include <mpol_cpp/ops/simd/isa.h>

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

/// The smallest of the quotas of this process's control group and those above it.
template <typename QuotaAt>
std::optional<double> smallest_quota(const std::string& controller, QuotaAt quota_at) {
  std::optional<double> smallest;
  for (const auto& folder : control_group_folders(controller)) {
    if (const auto quota = quota_at(folder)) smallest = std::min(*quota, smallest.value_or(*quota));
  }
  return smallest;
}

std::optional<double> quota_cpus() {
  const auto version_2 =
      smallest_quota("", [](const std::filesystem::path& folder) { return quota_of_cpu_max(first_line(folder / "cpu.max")); });
  if (version_2) return version_2;
  return smallest_quota("cpu", [](const std::filesystem::path& folder) {
    return quota_of_cfs(first_line(folder / "cpu.cfs_quota_us"), first_line(folder / "cpu.cfs_period_us"));
  });
}

}  // namespace

std::optional<double> quota_of_cfs(const std::string& quota_us, const std::string& period_us) {
  const auto quota = number_of<double>(quota_us), period = number_of<double>(period_us);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
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

void declare_threads(OptionSet& options, std::optional<std::int64_t>& threads) {
  options.integer("--threads", threads, Range::between(1, 4096), "Threads; default: the CPUs this process may use",
                  Record::result);
}

std::int64_t use_threads(std::optional<std::int64_t> threads) {
  const auto number = threads.value_or(available_cpus());
  at::set_num_threads(static_cast<int>(number));
  log_info(fmt::format("{} threads, {} instructions", number, to_string(selected_isa())));
  return number;
}

}  // namespace mpol::cli
