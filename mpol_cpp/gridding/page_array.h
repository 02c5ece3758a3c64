#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

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
    const auto bytes = size * sizeof(T);
    if (bytes < smallest_mapping) {
      const auto lines = (bytes / cache_line + 1) * cache_line;
      data_ = static_cast<T*>(std::aligned_alloc(cache_line, lines));
      if (data_ == nullptr) throw std::bad_alloc();
      std::memset(static_cast<void*>(data_), 0, lines);
      return;
    }
    mapped_bytes_ = bytes + huge_page;
    auto* mapping = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<char*>(mapping);
    ::madvise(mapping_, mapped_bytes_, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const auto beyond = reinterpret_cast<std::uintptr_t>(mapping_) % huge_page;  // huge pages begin at multiples of their size
    data_ = reinterpret_cast<T*>(mapping_ + (beyond == 0 ? 0 : huge_page - beyond));
  }
  PageArray(PageArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_bytes_(other.mapped_bytes_) {}
  PageArray& operator=(PageArray&&) = delete;
  ~PageArray() {
    if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
    else std::free(data_);
  }

  T* data() const { return data_; }

  /// Gives back the pages behind the first `size` elements.
  void cut(std::size_t size) {
    if (mapping_ == nullptr) return;
    const auto used = static_cast<std::size_t>(reinterpret_cast<char*>(data_ + size) - mapping_);
    const auto kept = (used + small_page - 1) / small_page * small_page;
    if (kept == 0 || kept >= mapped_bytes_) return;
    ::munmap(mapping_ + kept, mapped_bytes_ - kept);
    mapped_bytes_ = kept;
  }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20, small_page = 4096, cache_line = 64;
  static constexpr std::size_t smallest_mapping = std::size_t{1} << 18;

  T* data_ = nullptr;
  char* mapping_ = nullptr;  // null when the allocator has the array
  std::size_t mapped_bytes_ = 0;
};

}  // namespace mpol::gridding
