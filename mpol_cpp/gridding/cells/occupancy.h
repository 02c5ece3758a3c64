#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <mpol_cpp/gridding/cells/cell_table.h>
#include <mpol_cpp/ops/memory/page_array.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::gridding {

/// Which of successive keys have an occupied cell, and the ranks of these.
class Occupancy {
 public:
  /// @param is_occupied  of a key in [0, keys), asked on several threads
  template <typename IsOccupied>
  Occupancy(std::int64_t keys, const IsOccupied& is_occupied);

  /// The occupancy by increasing keys, counted from `first_key`.
  Occupancy(std::int64_t keys, std::span<const std::uint32_t> occupied, std::uint32_t first_key);

  std::int64_t cells() const { return words()[size_].before; }
  /// Words.
  std::int64_t size() const { return size_; }
  /// size() words, and one behind them that has no keys but all cells before it.
  const RankWord* words() const { return words_.data(); }
  /// The end of the words from `first` on that have at most so many cells, but for a few that are always taken.
  std::int64_t end_of_strip(std::int64_t first, std::int64_t most_cells) const;

 private:
  void rank();

  std::int64_t size_;
  PageArray<RankWord> words_;
};

template <typename IsOccupied>
Occupancy::Occupancy(std::int64_t keys, const IsOccupied& is_occupied)
    : size_((keys + RankWord::keys - 1) / RankWord::keys), words_(static_cast<std::size_t>(size_) + 1) {
  constexpr std::int64_t words_per_task = 512;
  ops::share_ranges(size_, words_per_task, [&](std::int64_t first_word, std::int64_t last_word) {
    for (auto i = first_word; i < last_word; ++i) {
      const auto first = i * RankWord::keys;
      const auto last = std::min<std::int64_t>(first + RankWord::keys, keys);
      std::uint64_t bits = 0;
      for (auto key = first; key < last; ++key) bits |= static_cast<std::uint64_t>(is_occupied(key)) << (key - first);
      words_.data()[i].bits = bits;
    }
  });
  rank();
}

}  // namespace mpol::gridding
