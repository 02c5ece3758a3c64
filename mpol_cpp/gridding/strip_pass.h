#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/cell_kernels.h>
#include <mpol_cpp/gridding/cell_sums.h>
#include <mpol_cpp/gridding/cell_table.h>
#include <mpol_cpp/gridding/page_array.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::gridding {

/// Samples [begin, end) of a data channel, or their Hermitian partners.
struct SampleRun {
  std::int64_t channel, begin, end;
  bool partner;
};

/// Cuts the samples that feed one image channel into runs of bounded length, in the order in which they are summed.
std::vector<SampleRun> sample_runs(const std::vector<std::int64_t>& channels, const Visibilities& visibilities,
                                   const CellSumOptions& options);

/// Some occupied cells of a row, and what their sums say.
struct CellPart {
  std::int64_t count = 0;
  std::uint32_t columns[CellResults::most];
  CellResults results;
};

/// One pass over the samples of an image channel: the tables of the occupied cells in rows [first_row, last_row) of the
/// packed plane. The samples of a run are first sorted into buckets of rows, each worker sorting a share of them; then each
/// worker sums the cells of its own buckets, in the order of the data whatever the number of workers. So a cell's sums are
/// in a near cache when its samples come. The buckets of a worker lie one behind the other, so that it reads one stream.
class StripPass {
 public:
  /// @param samples  that `run` will go through
  StripPass(const GridCoords& coords, std::int64_t first_row, std::int64_t last_row, std::int64_t samples, std::int64_t workers,
            std::int64_t table_bytes);

  /// Each worker gives back the memory that it made resident: the system has such pages at hand for the same processor.
  ~StripPass();
  StripPass(const StripPass&) = delete;
  StripPass& operator=(const StripPass&) = delete;

  /// @return false when the cells did not fit into the budget; the tables are then of no use
  bool run(const Visibilities& visibilities, const std::vector<SampleRun>& runs, const DataTransform& transform,
           Scratch& scratch);

  std::int64_t first_row() const { return first_row_; }
  std::int64_t last_row() const { return last_row_; }
  /// Occupied cells in a row of the strip.
  std::int64_t cells_in_row(std::int64_t row) const { return row_counts_[static_cast<std::size_t>(row)]; }
  /// Calls `visit(part)` for the occupied cells of a row, CellPart after CellPart in increasing order.
  template <typename Visit>
  void visit_row(std::int64_t row, const Visit& visit) const;
  std::int64_t bytes_used() const { return budget_.used(); }

 private:
  /// A run of samples, sorted into the buckets of the first worker, then of the next …, and those outside the strip.
  struct SortedRun {
    SortedRun(std::int64_t most_samples, bool are_double, std::int64_t workers, Scratch& scratch);

    void* samples;  // SortedSample<double>, or <float>
    std::uint32_t* keys;
    std::vector<std::int64_t> share_begins;             // of the samples that each worker sorts, and the end
    std::vector<std::vector<std::uint32_t>> positions;  // where the next sample of each bucket goes, for each share
    std::vector<std::int64_t> bucket_begins;            // of the buckets of each worker, and the end
    bool are_double;
  };
  /// Finds the cells of a worker's share and counts the samples of each bucket.
  void locate(std::int64_t worker, const Visibilities& visibilities, const SampleRun& run, SortedRun& sorted) const;
  /// Turns the counts of buckets into positions.
  void lay_out(SortedRun& sorted) const;
  void scatter(std::int64_t worker, const SampleBlock& block, SortedRun& sorted) const;
  void accumulate(std::int64_t worker, const SortedRun& sorted);
  bool full() const;

  GridCoords coords_;
  CellKeys keys_;
  std::int64_t first_row_, last_row_;
  CellKernels kernels_;
  MemoryBudget budget_;
  int bucket_rows_shift_;  // a bucket has 1 << bucket_rows_shift_ rows
  BucketRule bucket_rule_;
  std::vector<std::int32_t> row_counts_;
  PageArray<std::uint32_t> directory_;
  std::deque<CellTable> tables_;  // one for each worker
};

template <typename Visit>
void StripPass::visit_row(std::int64_t row, const Visit& visit) const {
  constexpr std::int64_t listed_cells = std::int64_t{1} << CellKeys::shortest_leaf_shift;
  const auto& table = tables_[static_cast<std::size_t>((row - first_row_) >> bucket_rows_shift_) % tables_.size()];
  const auto leaves_per_row = std::int64_t{1} << (keys_.row_shift - keys_.leaf_shift);
  const auto* leaves = directory_.data() + (row - first_row_) * leaves_per_row;
  std::uint32_t entries[CellResults::most];
  CellPart part;
  const auto pass_on = [&] {
    kernels_.conclude(table.memory, entries, part.count, part.results);
    visit(std::as_const(part));
    part.count = 0;
  };
  for (std::int64_t run = 0; run < leaves_per_row; ++run) {
    if (leaves[run] == CellTable::none) continue;
    for (std::int64_t first = 0; first < std::int64_t{1} << keys_.leaf_shift; first += listed_cells) {
      const auto column = static_cast<std::uint32_t>((run << keys_.leaf_shift) + first);
      const auto entry = leaves[run] + static_cast<std::uint32_t>(first) * CellTable::entry_doubles;
      // Without branches, which nobody could predict.
      for (std::uint32_t i = 0; i < listed_cells; ++i) {
        part.columns[part.count] = column + i;
        entries[part.count] = entry + i * CellTable::entry_doubles;
        part.count += reinterpret_cast<const CellEntry*>(table.memory + entries[part.count])->totals != CellTable::none ? 1 : 0;
      }
      if (part.count > CellResults::most - listed_cells) pass_on();
    }
  }
  if (part.count > 0) pass_on();
}

}  // namespace mpol::gridding
