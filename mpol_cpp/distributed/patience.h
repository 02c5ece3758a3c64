#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace mpol::detail {

/// Waits for something that is asked for again and again: at first without sleeping, as an answer of a neighbour takes
/// microseconds; then in sleeps that grow to a millisecond, so that a rank that waits for long takes no core from one that works.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  /// One more wait.
  void wait() {
    const auto waited = Clock::now() - begin_;
    if (waited < std::chrono::microseconds(50)) return std::this_thread::yield();
    const auto sleep = std::chrono::duration_cast<std::chrono::microseconds>(waited) / 8;
    std::this_thread::sleep_for(std::min(sleep, std::chrono::microseconds(1000)));
  }
  /// Since it was made.
  Clock::duration waited() const { return Clock::now() - begin_; }

 private:
  Clock::time_point begin_ = Clock::now();
};

}  // namespace mpol::detail
