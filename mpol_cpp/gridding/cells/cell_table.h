#pragma once

#include <cstdint>

namespace mpol::gridding {

/// Sums over the samples of one cell about its origin o, with d = V - o: one cache line.
struct alignas(64) CellTotals {
  double weight;            // sum w
  double root_weight;       // sum sqrt(w)
  double weighted[2];       // sum w d, real and imaginary
  double root_weighted[2];  // sum sqrt(w) d
  double squares[2];        // sum w d^2
};

/// The origin o of a cell's sums: its first sample, rounded, so that the sums keep their digits when the signal is 10^6
/// times the noise.
struct CellOrigin {
  float real, imag;
};

struct alignas(16) CellEntry {
  CellOrigin origin;
  std::uint32_t minus_samples;  // minus their number: adding a sample borrows from the word above only at the first one
};

/// Which of 64 successive keys have an occupied cell, and how many have one before them.
struct RankWord {
  static constexpr std::uint32_t keys = 64;

  std::uint64_t bits;
  std::uint32_t before;
};

/// The sums of the cells of a strip. A cell's number is its key, counted from the first of the strip, or its rank among the
/// occupied cells where there are ranks. Kernels use the place in its stead, the bytes before the cell's entry, because
/// entries and totals are then addressed without computing.
struct CellTable {
  static constexpr std::int64_t bytes_per_cell = sizeof(CellTotals) + sizeof(CellEntry);
  static constexpr int place_shift = 4;
  static constexpr std::uint32_t totals_bytes_per_place = 4;
  static_assert(sizeof(CellEntry) == 1 << place_shift && sizeof(CellTotals) == totals_bytes_per_place << place_shift);
  /// Keys of a strip at most: places are numbers of 32 bits, and the marks of occupied keys take a byte each.
  static constexpr std::int64_t most_keys = std::int64_t{1} << 24;

  CellTotals* totals;
  CellEntry* entries;
  const RankWord* ranks;  // from the strip's first key on, or null
};

}  // namespace mpol::gridding
