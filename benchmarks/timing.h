#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <mpol_cpp/device/device_timer.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

namespace benchmarks {

/// Seconds that all cores together have been busy, and those that this process has used.
struct CpuTime {
  double all = 0, own = 0;

  static CpuTime read() {
    CpuTime time;
    std::ifstream stat("/proc/stat");
    std::string label;
    double user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, soft = 0;
    stat >> label >> user >> nice >> system >> idle >> io >> irq >> soft;
    time.all = (user + nice + system + irq + soft) / static_cast<double>(sysconf(_SC_CLK_TCK));
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
    time.own = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    return time;
  }
};

/// Repeats a call for about `seconds` after two calls that do not count: median, mean, minimum, processor time of all threads a
/// call, and how many cores other processes kept busy meanwhile (a row with much of that is no result).
template <typename Function>
nlohmann::json repeat(Function&& call, double seconds, std::size_t least = 5, std::size_t most = 2000) {
  call();
  call();
  std::vector<double> times;
  const auto before = CpuTime::read();
  double wall = 0;
  while (times.size() < least || (wall < seconds && times.size() < most)) {
    mpol::DeviceTimer timer(torch::kCPU);
    call();
    times.push_back(timer.seconds());
    wall += times.back();
  }
  const auto after = CpuTime::read();
  std::sort(times.begin(), times.end());
  const double others = std::max(0.0, ((after.all - before.all) - (after.own - before.own)) / wall);
  const double cpu = (after.own - before.own) / static_cast<double>(times.size());
  return {{"median_s", times[times.size() / 2]},
          {"mean_s", wall / static_cast<double>(times.size())},
          {"min_s", times.front()},
          {"cpu_s", cpu},
          {"repeats", times.size()},
          {"others_cpu", others}};
}

/// What use(part) of each of several parts takes together, once each, where make(i) makes part i outside of the time.
template <typename Make, typename Use>
nlohmann::json sum_over(std::int64_t parts, const Make& make, const Use& use) {
  double wall = 0, cpu = 0, others = 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto part = make(i);
    const auto before = CpuTime::read();
    mpol::DeviceTimer timer(torch::kCPU);
    use(part);
    wall += timer.seconds();
    const auto after = CpuTime::read();
    cpu += after.own - before.own;
    others += std::max(0.0, (after.all - before.all) - (after.own - before.own));
  }
  return {{"median_s", wall}, {"min_s", wall}, {"cpu_s", cpu}, {"repeats", 1}, {"others_cpu", others / wall}};
}

/// The most memory that this process has had so far, MiB.
inline double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace benchmarks
