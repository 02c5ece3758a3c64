#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>

#include <sys/mman.h>

namespace mpol::gridding {

/// An array of zeros of which only the pages that were written take memory, and which gives all of it back at once: what
/// the allocator keeps of freed blocks, in an arena for each thread, would break the promise of memory. Small arrays are the
/// allocator's all the same.
template <typename T>
class PageArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit PageArray(std::size_t size) {
    if (size * sizeof(T) < smallest_mapping) allocate(size * sizeof(T));
    else map(size * sizeof(T));
  }

  T* data() const { return data_.get(); }

  /// Gives back the pages behind the first `size` elements.
  void cut(std::size_t size) {
    auto& [mapping, bytes] = data_.get_deleter();
    if (mapping == nullptr) return;
    const auto used = static_cast<std::size_t>(reinterpret_cast<char*>(data() + size) - mapping);
    const auto kept = (used / small_page + 1) * small_page;
    if (kept >= bytes) return;
    ::munmap(mapping + kept, bytes - kept);
    bytes = kept;
  }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20, small_page = 4096, cache_line = 64;
  static constexpr std::size_t smallest_mapping = std::size_t{1} << 19;

  struct Release {
    char* mapping = nullptr;  // null when the allocator has the array
    std::size_t bytes = 0;
    void operator()(T* data) const {
      if (mapping != nullptr) ::munmap(mapping, bytes);
      else std::free(data);
    }
  };

  void allocate(std::size_t bytes) {
    const auto lines = (bytes / cache_line + 1) * cache_line;
    auto* memory = std::aligned_alloc(cache_line, lines);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, lines);
    data_ = {static_cast<T*>(memory), Release()};
  }

  /// In huge pages: the first write to a page costs microseconds on a virtual machine, as much for 2 MiB as for 4 KiB but for
  /// the zeroing. What is never written of the last one is wasted.
  void map(std::size_t bytes) {
    const auto with_margin = (bytes / huge_page + 2) * huge_page;  // huge pages begin at multiples of their size
    auto* memory = ::mmap(nullptr, with_margin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, with_margin, MADV_HUGEPAGE);
    auto* mapping = static_cast<char*>(memory);
    const auto beyond = reinterpret_cast<std::uintptr_t>(mapping) % huge_page;
    data_ = {reinterpret_cast<T*>(mapping + (beyond == 0 ? 0 : huge_page - beyond)), Release{mapping, with_margin}};
  }

  std::unique_ptr<T[], Release> data_;
};

/// Memory that one step after another uses, so that its pages are made resident once.
class Scratch {
 public:
  /// Uninitialised room; what was in the last one is lost.
  char* room(std::size_t bytes) {
    if (bytes > bytes_ || !pages_) {
      pages_.reset();
      pages_.emplace(bytes);
      bytes_ = bytes;
    }
    return pages_->data();
  }

 private:
  std::optional<PageArray<char>> pages_;
  std::size_t bytes_ = 0;
};

}  // namespace mpol::gridding
