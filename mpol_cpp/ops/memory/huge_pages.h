#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace mpol::ops {

/// Asks the system for pages of 2 MiB where they fit whole into memory that is about to be filled: that takes fewer faults, and
/// going through it in no order fewer walks of the page table. A hint; nothing happens where the system does not take it.
inline void prefer_huge_pages(void* data, std::size_t bytes) {
  constexpr std::size_t page = std::size_t{1} << 21;
  const auto begin = reinterpret_cast<std::uintptr_t>(data), first = (begin + page - 1) / page * page,
             end = (begin + bytes) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

/// Gives mapped memory its pages at once, where the system can (Linux 5.14): in one call what would be a fault for each of them.
inline void fill_pages(void* data, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  madvise(data, bytes, MADV_POPULATE_WRITE);
#else
  (void)data, (void)bytes;
#endif
}

}  // namespace mpol::ops
