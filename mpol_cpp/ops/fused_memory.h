#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include <mpol_cpp/ops/huge_pages.h>

namespace mpol::ops {

/// Zeroed memory, aligned to 64 bytes, of a fixed size.
template <typename T>
class AlignedArray {
 public:
  static constexpr std::size_t alignment = 64;
  static constexpr std::int64_t line = static_cast<std::int64_t>(alignment / sizeof(T));  // elements

  AlignedArray() = default;
  explicit AlignedArray(std::int64_t size)
      : size_(size), data_(static_cast<T*>(::operator new (bytes(), std::align_val_t{alignment}))) {
    prefer_huge_pages(data_.get(), bytes());
    std::memset(static_cast<void*>(data_.get()), 0, bytes());
  }

  T* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

  /// The smallest multiple of 64 bytes that holds so many elements.
  static constexpr std::int64_t padded(std::int64_t elements) { return (elements + line - 1) / line * line; }

 private:
  struct Delete {
    void operator()(T* data) const { ::operator delete (data, std::align_val_t{alignment}); }
  };
  std::int64_t size_ = 0;
  std::unique_ptr<T, Delete> data_;
};

}  // namespace mpol::ops
