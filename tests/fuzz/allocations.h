#pragma once

#include <cstdint>

namespace mpol::testing {

/// Bytes that the program has allocated and not freed since this was made, at their most. Only a build with the address
/// sanitizer can tell; elsewhere it is always 0. One at a time.
class AllocationWatch {
 public:
  AllocationWatch();
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  std::int64_t most() const;
  static bool available();
};

/// What a reader may hold for a file of that size: ten times the file, and what any file takes: blocks of 1 MiB that
/// archives are read through, the buffers of cfitsio, libzip and zlib, and the tree of a text.
inline std::int64_t allocation_limit(std::int64_t file_bytes) { return 10 * file_bytes + (std::int64_t{4} << 20); }

}  // namespace mpol::testing
