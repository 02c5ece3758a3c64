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

/// In which pages an array becomes resident. The first write to a page costs microseconds on a virtual machine, as much for
/// 2 MiB as for 4 KiB but for the zeroing; what is never written of the last huge page is wasted.
enum class Pages { small, huge };

/// An array of zeros of which only the pages that were written take memory, and which gives all of it back at once: what
/// the allocator keeps of freed blocks, in an arena for each thread, would break the promise of memory. Small arrays are the
/// allocator's all the same.
template <typename T>
class PageArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit PageArray(std::size_t size, Pages pages = Pages::huge) {
    if (size * sizeof(T) < smallest_mapping) allocate(size * sizeof(T));
    else map(size * sizeof(T), pages);
  }

  T* data() const { return data_.get(); }

  /// Gives back all pages.
  void clear() { data_.reset(); }
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

  void map(std::size_t bytes, Pages pages) {
    const auto with_margin = bytes + huge_page;  // huge pages begin at multiples of their size
    auto* memory = ::mmap(nullptr, with_margin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, with_margin, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
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
