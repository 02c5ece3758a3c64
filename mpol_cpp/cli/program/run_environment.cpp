#include <mpol_cpp/cli/program/run_environment.h>

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include <torch/version.h>

#include <mpol_cpp/core/version.h>
#include <mpol_cpp/device/device_memory.h>

namespace mpol::cli {
namespace {

double now() {
  timespec time = {};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// When the kernel started this process, seconds after boot: field 22 of /proc/self/stat, counted after the name.
double process_start() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return now();
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  return fields >> ticks ? ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) : now();
}

}  // namespace

std::map<std::string, std::string> versions() {
  return {{"mpol_cpp", version()}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}};
}

double peak_memory() { return static_cast<double>(memory_use(torch::kCPU).peak); }

double seconds_since_start() {
  static const double start = process_start();
  return now() - start;
}

}  // namespace mpol::cli
