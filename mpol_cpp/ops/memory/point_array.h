#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <mpol_cpp/ops/memory/work_memory.h>

namespace mpol::ops {

/// One value for each point, aligned to 64 bytes, with zeros after the last that kernels may read as a whole vector. The
/// values are left as the memory was: whoever fills them touches the pages first.
template <typename T>
class PointArray {
 public:
  static constexpr std::int64_t room = 64;

  PointArray() = default;
  explicit PointArray(std::int64_t count) : size_(count + room), memory_(bytes()) {
    std::fill(data() + count, data() + size_, T{});
  }

  T* data() const { return static_cast<T*>(memory_.data()); }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

 private:
  std::int64_t size_ = 0;
  WorkMemory memory_;
};

}  // namespace mpol::ops
