#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include <mpol_cpp/ops/huge_pages.h>

namespace mpol::ops {

/// One value for each point, aligned to 64 bytes, with zeros after the last that kernels may read as a whole vector. The
/// values are left as the memory was: whoever fills them touches the pages first.
template <typename T>
class PointArray {
 public:
  static constexpr std::int64_t room = 64;

  PointArray() = default;
  explicit PointArray(std::int64_t count)
      : size_(count + room), data_(static_cast<T*>(::operator new (bytes(), std::align_val_t{alignment}))) {
    prefer_huge_pages(data_.get(), bytes());
    std::fill(data() + count, data() + size_, T{});
  }

  T* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

 private:
  static constexpr std::size_t alignment = 64;
  struct Delete {
    void operator()(T* data) const { ::operator delete (data, std::align_val_t{alignment}); }
  };
  std::int64_t size_ = 0;
  std::unique_ptr<T, Delete> data_;
};

}  // namespace mpol::ops
