#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include <sys/mman.h>

#include <mpol_cpp/ops/memory/huge_pages.h>

namespace mpol::ops {

/// Memory aligned to 64 bytes, left as it was. Large blocks are mapped, so that freeing them gives all of it back at once: the
/// allocator maps nothing below the largest block that was ever freed, and keeps what it carves from its heap beneath any
/// small block that lives longer (of dirty imaging's 60 MiB it kept up to 40 more).
class WorkMemory {
 public:
  static constexpr std::size_t alignment = 64;

  WorkMemory() = default;
  explicit WorkMemory(std::size_t bytes) {
    if (bytes < smallest_mapping) {
      data_ = {::operator new (bytes, std::align_val_t{alignment}), Release{0}};
      return;
    }
    auto* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = {memory, Release{bytes}};
    prefer_huge_pages(memory, bytes);
  }

  void* data() const { return data_.get(); }
  /// Whether all of it is zero, untouched.
  bool mapped() const { return data_.get_deleter().mapped_bytes > 0; }

 private:
  static constexpr std::size_t smallest_mapping = std::size_t{1} << 17;

  struct Release {
    std::size_t mapped_bytes;  // 0 when the allocator has the block
    void operator()(void* data) const {
      if (mapped_bytes > 0) ::munmap(data, mapped_bytes);
      else ::operator delete (data, std::align_val_t{alignment});
    }
  };
  std::unique_ptr<void, Release> data_;
};

}  // namespace mpol::ops
