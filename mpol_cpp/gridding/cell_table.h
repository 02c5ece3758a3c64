#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mpol::gridding {

/// Sums over the samples of one cell about its origin o, with d = V - o: one cache line.
struct alignas(64) CellTotals {
  double weight;            // sum w
  double root_weight;       // sum sqrt(w)
  double weighted[2];       // sum w d, real and imaginary
  double root_weighted[2];  // sum sqrt(w) d
  double squares[2];        // sum w d^2
};

/// A cell in its leaf: where its totals are, how many samples it has, and the origin o of its sums: its first sample,
/// rounded, so that the sums keep their digits when the signal is 10^6 times the noise.
struct CellEntry {
  std::int32_t record;  // CellTable::none where the cell is empty
  std::uint32_t samples;
  float origin[2];
};

/// How keys number the cells of the packed uv plane: row << row_shift | column. A run of 1 << leaf_shift cells of a row
/// shares a leaf; runs are longer where a directory of short ones would be large.
struct CellKeys {
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
/// for each cell) -> totals, in order of first appearance, so that a track of samples walks through memory.
/// The pointers are public for the kernels, which are compiled apart for each instruction set.
struct CellTable {
  static constexpr int total_slab_shift = 10;  // totals in a slab
  static constexpr int leaf_slab_shift = 14;   // leaf entries in a slab
  static constexpr std::int32_t none = -1;

  /// @param directory   shared by all workers; each writes the elements of its own rows only
  /// @param first_key   key of the first cell of the strip, where the directory begins
  /// @param row_counts  occupied cells of each row of the plane, shared in the same way
  CellTable(const CellKeys& keys, std::int32_t* directory, std::uint32_t first_key, std::int32_t* row_counts,
            MemoryBudget& budget);

  /// Makes the entry of a cell that has none; null when the budget is exceeded.
  CellEntry* insert(std::uint32_t key, double real, double imag);
  /// The entries of the run of cells whose directory element is `base`.
  const CellEntry* leaf(std::int32_t base) const {
    return leaves[base >> leaf_slab_shift] + (base & ((1 << leaf_slab_shift) - 1));
  }
  const CellTotals& totals_of(std::int32_t record) const {
    return totals[record >> total_slab_shift][record & ((1 << total_slab_shift) - 1)];
  }

  std::int32_t* directory;
  CellEntry* const* leaves = nullptr;
  CellTotals* const* totals = nullptr;
  std::uint32_t first_key;
  int leaf_shift;
  bool full = false;

 private:
  std::int32_t add_leaf();
  std::int32_t add_totals();

  int row_shift_;
  std::int32_t* row_counts_;
  MemoryBudget& budget_;
  std::int32_t records_ = 0, entries_ = 0;
  std::vector<std::unique_ptr<CellEntry[]>> leaf_slabs_;
  std::vector<std::unique_ptr<CellTotals[]>> total_slabs_;
  std::vector<CellEntry*> leaf_pointers_;
  std::vector<CellTotals*> total_pointers_;
};

}  // namespace mpol::gridding
