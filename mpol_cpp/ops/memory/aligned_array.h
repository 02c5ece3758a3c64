#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <mpol_cpp/ops/memory/huge_pages.h>
#include <mpol_cpp/ops/memory/work_memory.h>

namespace mpol::ops {

/// Zeroed memory, aligned to 64 bytes, of a fixed size.
template <typename T>
class AlignedArray {
 public:
  static constexpr std::int64_t line = static_cast<std::int64_t>(WorkMemory::alignment / sizeof(T));  // elements

  AlignedArray() = default;
  explicit AlignedArray(std::int64_t size) : size_(size), memory_(bytes()) {
    if (!memory_.mapped()) std::memset(memory_.data(), 0, bytes());
    else if (bytes() <= most_at_once) fill_pages(memory_.data(), bytes());
  }

  T* data() const { return static_cast<T*>(memory_.data()); }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

  /// The smallest multiple of 64 bytes that holds so many elements.
  static constexpr std::int64_t padded(std::int64_t elements) { return (elements + line - 1) / line * line; }

 private:
  /// Zeros that are read before they are written cost two faults a page, the second of which stops all threads; of more than this
  /// threads fill their parts beside each other, in larger pages.
  static constexpr std::size_t most_at_once = std::size_t{1} << 24;

  std::int64_t size_ = 0;
  WorkMemory memory_;
};

}  // namespace mpol::ops
