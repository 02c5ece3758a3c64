#include <mpol_cpp/cli/program/run_environment.h>

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include <torch/version.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/device/device_memory.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/ops/simd/isa.h>
#include <mpol_cpp/plot/gnuplot.h>

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

std::string build_description() {
  const auto gnuplot = plot::find_gnuplot();
  std::string text;
  for (const auto& [name, words] : {
           std::pair<std::string, std::string>("mpol", version()),
           {"libtorch", TORCH_VERSION},
           {"compiler", __VERSION__},
           {"kernels", fmt::format("{} (portable, avx2 and avx512 are built in)", to_string(selected_isa()))},
#ifdef MPOL_WITH_CUDA
           {"cuda", "built in"},
#else
           {"cuda", "not built in: build with -DMPOL_CUDA=ON"},
#endif
           {"measurement sets",
            io::reads_measurement_sets() ? "by casacore" : "not built in: build with -DMPOL_WITH_CASACORE=ON"},
           {"figures", gnuplot ? gnuplot->string() : "no gnuplot here: runs leave scripts and data"},
       }) {
    text += fmt::format("{:<17} {}\n", name, words);
  }
  return text;
}

double peak_memory() { return static_cast<double>(memory_use(torch::kCPU).peak); }

double seconds_since_start() {
  static const double start = process_start();
  return now() - start;
}

}  // namespace mpol::cli
