#pragma once

#include <cstdint>

#include <ATen/Parallel.h>

namespace mpol {

/// Keeps LibTorch to one thread while it lives where matrices are small: what threads wait for each other is more than what they
/// compute, a hundred times more on a machine with other work.
class FewThreads {
 public:
  /// @param rows  of the matrices
  explicit FewThreads(std::int64_t rows) : before_(at::get_num_threads()), lowered_(rows < worth_threads && before_ > 1) {
    if (lowered_) at::set_num_threads(1);
  }
  ~FewThreads() {
    if (lowered_) at::set_num_threads(before_);
  }
  FewThreads(const FewThreads&) = delete;
  FewThreads& operator=(const FewThreads&) = delete;
  FewThreads(FewThreads&&) = delete;
  FewThreads& operator=(FewThreads&&) = delete;

 private:
  static constexpr std::int64_t worth_threads = 500;
  int before_;
  bool lowered_;
};

}  // namespace mpol
