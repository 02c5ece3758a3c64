#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

namespace mpol::gridding {

/// An array of zeros of which only the pages that were written take memory, and which gives all of it back at once: what
/// the allocator keeps of freed blocks, in an arena for each thread, would break the promise of memory.
template <typename T>
class PageArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit PageArray(std::size_t size) : bytes_(std::max<std::size_t>(size, 1) * sizeof(T)) {
    auto* pages = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    ::madvise(pages, bytes_, MADV_NOHUGEPAGE);  // or a system that likes huge pages makes them of pages never written
    data_ = static_cast<T*>(pages);
  }
  PageArray(PageArray&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  PageArray& operator=(PageArray&&) = delete;
  ~PageArray() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace mpol::gridding
