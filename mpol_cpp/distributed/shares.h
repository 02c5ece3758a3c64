#pragma once

#include <cstdint>
#include <vector>

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

/// Who does which of some things that take equally long: each goes to the rank that would be done with it first, the lowest of
/// equal ones. With equal speeds thing i is that of rank i modulo their number.
/// @param speeds  of the ranks, in any common unit
/// @return        the rank of each thing
/// @throws ValueError unless count >= 0 and all speeds are finite and > 0
std::vector<std::int64_t> owners_by_speed(std::int64_t count, const std::vector<double>& speeds);

/// As many things for each rank as owners_by_speed() gives it, side by side in the order of ranks; with equal speeds share_of().
/// A slow rank may get none.
/// @throws ValueError as owners_by_speed()
std::vector<Share> shares_by_speed(std::int64_t count, const std::vector<double>& speeds);

}  // namespace mpol
