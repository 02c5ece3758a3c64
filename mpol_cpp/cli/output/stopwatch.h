#pragma once

#include <chrono>

namespace mpol::cli {

/// Adds the time since its beginning to one of the run's timings when it is stopped, or its scope ends.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(&seconds) {}
  ~Stopwatch() { stop(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void stop() {
    if (seconds_ == nullptr) return;
    *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    seconds_ = nullptr;
  }

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace mpol::cli
