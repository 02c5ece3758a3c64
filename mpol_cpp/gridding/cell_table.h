#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <mpol_cpp/gridding/page_array.h>

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

/// A cell in its leaf: where its totals are, their origin, and how many samples it has.
struct alignas(16) CellEntry {
  CellOrigin origin;
  std::uint32_t totals;  // their place; CellTable::none where the cell is empty
  std::uint32_t samples;
};

/// How keys number the cells of the packed uv plane: row << row_shift | column. A run of 1 << leaf_shift cells of a row
/// shares a leaf; runs are longer where a directory of short ones would be large.
struct CellKeys {
  static constexpr int shortest_leaf_shift = 4;

  CellKeys(std::int64_t npix, std::int64_t rows_in_strip);

  std::int64_t npix;
  int row_shift;
  int leaf_shift;
};

/// Bytes that the tables of all workers together may take.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::int64_t bytes) : bytes_(bytes) {}
  void charge(std::int64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  bool exceeded() const { return used() > bytes_; }
  std::int64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_;
  std::atomic<std::int64_t> used_ = 0;
};

/// The occupied cells of the rows that one worker owns: directory (one element for each run of cells) -> leaf (one entry
/// for each cell) -> totals. Leaves and totals share memory in order of first appearance, so that a track of samples walks
/// through it; each is found by the number of doubles that lie before it, which addresses memory without being multiplied.
/// The pointers are public for the kernels, which are compiled apart for each instruction set.
struct CellTable {
  static constexpr std::uint32_t none = 0;  // fresh pages hold zeros, and an empty leaf lies first: that of runs without one
  static constexpr std::uint32_t entry_doubles = sizeof(CellEntry) / sizeof(double);
  static constexpr std::uint32_t totals_doubles = sizeof(CellTotals) / sizeof(double);

  /// @param directory   of the strip, shared by all workers; each writes the elements of its own rows only
  /// @param row_counts  occupied cells of each row of the strip, shared in the same way
  /// @param cells       in the strip
  /// @param most_cells  that this worker can meet
  CellTable(const CellKeys& keys, std::uint32_t* directory, std::int32_t* row_counts, std::int64_t cells, std::int64_t most_cells,
            MemoryBudget& budget, Pages pages);

  /// The place of a cell's entry, which is made where there is none with the given sample as origin; 0 when the budget
  /// is exceeded.
  /// @param key  within the strip
  std::uint32_t insert(std::uint32_t key, double real, double imag);
  /// Gives the memory back.
  void clear() { pages_.clear(); }

  std::uint32_t* directory;  // the place of each run's first entry
  double* memory;            // of leaves and totals
  int leaf_shift;
  bool full = false;

 private:
  std::uint32_t take(std::uint32_t doubles);

  int row_shift_;
  std::int32_t* row_counts_;
  MemoryBudget& budget_;
  std::uint32_t used_, charged_;  // doubles
  PageArray<CellTotals> pages_;
};

}  // namespace mpol::gridding
