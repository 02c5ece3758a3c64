#include <mpol_cpp/cli/memory.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

constexpr double program_bytes = 160 * 0x1p20;  // LibTorch at rest

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

}  // namespace

std::optional<double> available_memory() {
  const auto machine = meminfo_available(), group = group_available();
  if (machine && group) return std::min(*machine, *group);
  return machine ? machine : group;
}

double fit_memory(double npix, double nchan, torch::Dtype dtype, const std::string& optimizer) {
  const double real_bytes = dtype == torch::kFloat64 ? 8 : 4;
  // Base, gradient, two moments, the copy kept for divergence, what a step keeps of softplus, convolution, transform and
  // regularisers, and the results: measured at 23 (float64) and 24 (float32) arrays of the cube.
  double arrays = 26;
  if (optimizer == "lbfgs") arrays += 2 * 100;  // its history of steps and gradient changes
  const double dirty_bytes = dirty_memory(npix, nchan);
  return program_bytes + std::max(arrays * real_bytes * npix * npix * nchan, dirty_bytes + 2 * real_bytes * npix * npix * nchan);
}

double dirty_memory(double npix, double nchan) {
  // Per channel the images and beam in float64; while one channel is made, a complex plane and its transform.
  return 8 * npix * npix * (3 * nchan + 6);
}

std::string memory_words(double bytes) {
  if (bytes >= 0x1p40) return fmt::format("{:.1f} TiB", bytes / 0x1p40);
  return bytes >= 0x1p30 ? fmt::format("{:.1f} GiB", bytes / 0x1p30) : fmt::format("{:.0f} MiB", bytes / 0x1p20);
}

void check_memory(double needed, std::optional<double> available, std::int64_t npix, std::int64_t nchan) {
  if (!available || needed <= *available) return;
  const std::string channels = nchan == 1 ? "" : fmt::format(" with {} channels", nchan);
  throw Error(
      error_text("--npix", fmt::format("{}{}", npix, channels),
                 fmt::format("needs about {} of memory and {} are available", memory_words(needed), memory_words(*available)),
                 nchan == 1 ? "choose a smaller --npix" : "choose a smaller --npix or fewer --channels"));
}

}  // namespace mpol::cli
