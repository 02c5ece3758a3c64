#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <mpol_cpp/gridding/cells/cell_box.h>
#include <mpol_cpp/gridding/cells/cell_kernels.h>
#include <mpol_cpp/gridding/cells/cell_sums.h>
#include <mpol_cpp/gridding/cells/cell_table.h>
#include <mpol_cpp/gridding/cells/occupancy.h>
#include <mpol_cpp/ops/memory/page_array.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::gridding {

/// Samples [begin, end) of a data channel, or their Hermitian partners.
struct SampleRun {
  std::int64_t channel, begin, end;
  bool partner;
};

/// The samples that feed one image channel, in runs of bounded length in the order in which they are summed, and how many
/// workers share them.
struct SampleSource {
  SampleSource(const std::vector<std::int64_t>& channels, const Visibilities& visibilities, const CellSumOptions& options,
               std::int64_t workers);

  const Visibilities& visibilities;
  const DataTransform& transform;
  std::vector<SampleRun> runs;
  std::int64_t workers;
};

/// Which keys [first_key, first_key + keys) of a box have samples: a pass over the coordinates alone.
Occupancy occupied_keys(const CellBox& box, std::int64_t first_key, std::int64_t keys, const SampleSource& source);

/// The keys of all samples, increasing, each once; 4 bytes a sample. For boxes of many more cells than there are samples.
std::vector<std::uint32_t> sorted_keys(const CellBox& box, const SampleSource& source);

/// Some occupied cells, and what their sums say.
struct CellPart {
  std::int64_t first = 0;  // rank of the first in its strip
  std::int64_t count = 0;
  std::uint32_t keys[CellResults::most];
  CellResults results;
};

/// Memory that one strip after another uses.
struct StripMemory {
  Scratch table;
  Scratch samples;
};

/// One pass over the samples of an image channel, for the cells of some successive keys, the strip. The samples of a run are
/// first sorted into buckets of successive keys, each worker sorting a share of them; then each worker sums the cells of
/// successive buckets with an even share of the samples, in the order of the data whatever the number of workers. So a cell's
/// sums are in a near cache when its samples come.
class StripPass {
 public:
  /// A strip of the whole box, with room for every cell.
  StripPass(const CellBox& box, StripMemory& memory);
  /// The keys of words [first_word, last_word) of the occupied ones from `first_key` on, with room for these.
  StripPass(const CellBox& box, std::int64_t first_key, const Occupancy& occupied, std::int64_t first_word,
            std::int64_t last_word, StripMemory& memory);

  StripPass(const StripPass&) = delete;
  StripPass& operator=(const StripPass&) = delete;

  /// Sums the samples; to be called once.
  void run(const SampleSource& source);

  /// Occupied cells.
  std::int64_t cells() const { return static_cast<std::int64_t>(words_[word_count_].before - words_->before); }
  /// Calls `visit(part)` on several threads for all occupied cells, by increasing key in each part.
  template <typename Visit>
  void each_part(const Visit& visit) const;

 private:
  /// A run of samples, sorted into buckets, and behind them those outside the strip.
  struct SortedRun {
    SortedRun(const SampleSource& source, Scratch& memory);

    char* samples;  // SortedSample<double>, or <float>
    std::uint32_t* keys;
    std::vector<std::int64_t> share_begins;          // of the samples that each worker sorts, and the end
    std::vector<std::vector<std::uint32_t>> counts;  // of the samples of each bucket, for each share
    std::vector<std::vector<char*>> positions;       // where the next of these goes
    std::vector<std::int64_t> bucket_begins;         // of the samples of each worker's buckets, and the end
    bool are_double;
    std::int64_t sample_bytes;
  };

  StripPass(const CellBox& box, std::int64_t first_key, std::int64_t keys, std::int64_t cells, StripMemory& memory);
  /// Finds the keys of a worker's share and counts the samples of each bucket.
  void locate(std::int64_t worker, const Visibilities& visibilities, const SampleRun& run, SortedRun& sorted) const;
  /// Turns the counts of buckets into positions, and shares the buckets out.
  void lay_out(SortedRun& sorted) const;
  void scatter(std::int64_t worker, const SampleBlock& block, SortedRun& sorted) const;
  void accumulate(std::int64_t worker, const SortedRun& sorted) const;

  CellBox box_;
  std::int64_t first_key_, keys_;
  CellKernels kernels_;
  BucketRule bucket_rule_;
  StripMemory& memory_;
  CellTable table_;
  std::optional<Occupancy> found_;  // after a run over every key
  const RankWord* words_ = nullptr;
  std::int64_t word_count_ = 0;
};

template <typename Visit>
void StripPass::each_part(const Visit& visit) const {
  constexpr std::int64_t words_per_task = 1024;
  ops::share_ranges(word_count_, words_per_task, [&](std::int64_t first, std::int64_t last) {
    std::uint32_t cells[CellResults::most];
    CellPart part;
    const auto pass_on = [&] {
      kernels_.conclude(table_, cells, part.count, part.results);
      visit(std::as_const(part));
      part.count = 0;
    };
    for (auto i = first; i < last; ++i) {
      const auto& word = words_[i];
      if (part.count + std::popcount(word.bits) > CellResults::most) pass_on();
      if (part.count == 0) part.first = word.before - words_->before;
      for (auto bits = word.bits; bits != 0; bits &= bits - 1) {
        const auto key = static_cast<std::uint32_t>(i * RankWord::keys + std::countr_zero(bits));
        cells[part.count] = table_.ranks == nullptr ? key : static_cast<std::uint32_t>(part.first + part.count);
        part.keys[part.count++] = static_cast<std::uint32_t>(first_key_) + key;
      }
    }
    if (part.count > 0) pass_on();
  });
}

}  // namespace mpol::gridding
