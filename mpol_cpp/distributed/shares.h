#pragma once

#include <cstdint>

namespace mpol {

/// What one rank takes of something countable: [begin, end), perhaps nothing.
struct Share {
  std::int64_t begin = 0;  ///< the first thing
  std::int64_t end = 0;    ///< behind the last

  std::int64_t size() const { return end - begin; }  ///< how many
  bool is_empty() const { return begin == end; }     ///< whether there is nothing to do
};

/// The share of a rank: all shares lie side by side in the order of ranks, and differ by one at most; with more ranks than things
/// the last ranks get none.
/// @throws ValueError unless 0 <= rank < size and count >= 0
Share share_of(std::int64_t count, std::int64_t rank, std::int64_t size);

}  // namespace mpol
