#include <mpol_cpp/gridding/cells/cell_sums.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/cells/growing_array.h>
#include <mpol_cpp/ops/memory/page_array.h>
#include <mpol_cpp/gridding/cells/stream_median.h>
#include <mpol_cpp/gridding/cells/strip_pass.h>
#include <mpol_cpp/gridding/cells/visit_cells.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t samples_per_worker = 4096;  // below this a thread costs more than it saves
constexpr std::int64_t most_workers = 254;
constexpr std::int64_t most_sorted = std::int64_t{1} << 20;                       // samples whose keys are sorted: 4 MiB
constexpr std::int64_t most_samples = std::numeric_limits<std::uint32_t>::max();  // that one cell can count

/// The growing results of all image channels.
struct Results {
  explicit Results(std::int64_t upper_bound)
      : cells(upper_bound),
        averages(upper_bound),
        weights(upper_bound),
        samples(upper_bound),
        real(upper_bound),
        imag(upper_bound) {}

  GrowingArray<std::int64_t> cells;
  GrowingArray<c10::complex<double>> averages;
  GrowingArray<double> weights;
  GrowingArray<std::int64_t> samples;
  GrowingArray<double> real, imag;
};

class Gridding {
 public:
  Gridding(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channel_map,
           const CellSumOptions& options)
      : coords_(coords),
        visibilities_(visibilities),
        channel_map_(channel_map),
        options_(options),
        box_(coords, std::max(visibilities.baselines().max_abs_u(), visibilities.baselines().max_abs_v())),
        results_(upper_bound()) {}

  CellSums sums() {
    go_through(&Gridding::keep);
    bool found = finish_pass();
    while (!found) {
      go_through(&Gridding::measure);
      found = finish_pass();
    }
    return released();
  }

 private:
  using Visitor = void (Gridding::*)(const StripPass&, std::int64_t channel);

  /// Samples that feed an image channel, with partners.
  std::int64_t samples_of(const std::vector<std::int64_t>& channels) const {
    return static_cast<std::int64_t>(channels.size()) * visibilities_.nvis() * (options_.hermitian_pairs ? 2 : 1);
  }

  std::int64_t upper_bound() const {
    std::int64_t most = 0;
    for (const auto& channels : channel_map_.sources) most += std::min(samples_of(channels), box_.cells());
    return most;
  }

  /// The memory promise leaves 64 MiB + 10 % of the data; ranks, sorted samples and medians take some of it.
  std::int64_t table_bytes() const {
    return options_.table_bytes.value_or((std::int64_t{18} << 20) + visibilities_.memory_bytes() / 40);
  }

  void go_through(Visitor visit) {
    for (std::int64_t channel = 0; channel < channel_map_.nchan(); ++channel) go_through_channel(channel, visit);
  }

  void go_through_channel(std::int64_t channel, Visitor visit) {
    const auto& channels = channel_map_.sources[static_cast<std::size_t>(channel)];
    const auto samples = samples_of(channels);
    const auto most_workers_now = std::min<std::int64_t>(at::get_num_threads(), most_workers);
    const SampleSource source(channels, visibilities_, options_,
                              std::clamp(samples / samples_per_worker, std::int64_t{1}, most_workers_now));
    const auto go_through_strip = [&](StripPass strip) {
      strip.run(source);
      (this->*visit)(strip, channel);
    };
    const auto most_cells = std::min(table_bytes() / CellTable::bytes_per_cell, CellTable::most_keys);
    // Cells without samples cost less than to find out first which these are, unless there are many of them.
    if (box_.cells() <= std::min(samples, most_cells)) return go_through_strip(StripPass(box_, memory_));
    const auto go_through_occupied = [&](std::int64_t first_key, const Occupancy& occupied) {
      for (std::int64_t first = 0, last = 0; occupied.cells() > 0 && first < occupied.size(); first = last) {
        last = occupied.end_of_strip(first, most_cells);
        go_through_strip(StripPass(box_, first_key, occupied, first, last, memory_));
      }
    };
    if (samples <= most_sorted && box_.cells() > CellTable::most_keys && samples < box_.cells() / 64) {
      return each_occupied_range(sorted_keys(box_, source), go_through_occupied);
    }
    for (std::int64_t first_key = 0; first_key < box_.cells(); first_key += CellTable::most_keys) {
      const auto keys = std::min(CellTable::most_keys, box_.cells() - first_key);
      go_through_occupied(first_key, occupied_keys(box_, first_key, keys, source));
    }
  }

  /// The ranges of successive keys that hold some of few samples in a wide plane, which is empty almost everywhere: each goes
  /// from one occupied key to another, in whole words.
  template <typename Use>
  static void each_occupied_range(const std::vector<std::uint32_t>& keys, const Use& use) {
    for (std::size_t first = 0, last = 0; first < keys.size(); first = last) {
      const auto first_key = keys[first] / RankWord::keys * RankWord::keys;
      const std::int64_t end_key = std::int64_t{first_key} + CellTable::most_keys;
      while (last < keys.size() && keys[last] < end_key) ++last;
      const std::span own(keys.data() + first, last - first);
      use(first_key, Occupancy(std::int64_t{own.back()} - first_key + 1, own, first_key));
    }
  }

  /// Appends the cells of a strip to the results.
  void keep(const StripPass& strip, std::int64_t channel) {
    const auto count = strip.cells(), first_cell = channel * coords_.npix() * coords_.npix();
    auto* cells = results_.cells.extend(count);
    auto* averages = results_.averages.extend(count);
    auto* weights = results_.weights.extend(count);
    auto* samples = options_.cell_statistics ? results_.samples.extend(count) : nullptr;
    auto* real = scatter_of(count);
    auto* imag = real + count;
    strip.each_part([&](const CellPart& part) {
      const auto& results = part.results;
      const auto first = part.first;
      for (std::int64_t i = 0; i < part.count; ++i) cells[first + i] = first_cell + box_.packed_index(part.keys[i]);
      for (std::int64_t i = 0; i < part.count; ++i) averages[first + i] = {results.real[i], results.imag[i]};
      std::copy_n(results.weight, part.count, weights + first);
      if (samples != nullptr) std::copy_n(results.samples, part.count, samples + first);
      std::copy_n(results.real_scatter, part.count, real + first);
      std::copy_n(results.imag_scatter, part.count, imag + first);
    });
    add_scatter(real, imag, count);
    if (options_.cell_statistics) {
      const auto clipped = [](double value) { return std::max(value, 0.0); };
      std::transform(real, real + count, results_.real.extend(count), clipped);
      std::transform(imag, imag + count, results_.imag.extend(count), clipped);
    }
  }

  /// Only the scatter of a strip, when the medians need another pass.
  void measure(const StripPass& strip, std::int64_t) {
    const auto count = strip.cells();
    auto* real = scatter_of(count);
    auto* imag = real + count;
    strip.each_part([&](const CellPart& part) {
      std::copy_n(part.results.real_scatter, part.count, real + part.first);
      std::copy_n(part.results.imag_scatter, part.count, imag + part.first);
    });
    add_scatter(real, imag, count);
  }

  /// The scatter of the real parts of so many cells, and behind it that of the imaginary parts.
  double* scatter_of(std::int64_t count) {
    return reinterpret_cast<double*>(memory_.samples.room(static_cast<std::size_t>(2 * count) * sizeof(double)));
  }

  void add_scatter(const double* real, const double* imag, std::int64_t count) {
    ops::share_tasks(2, 1, [&](std::int64_t part, std::int64_t) {
      auto& median = part == 0 ? real_median_ : imag_median_;
      median.add(part == 0 ? real : imag, count);
    });
  }

  bool finish_pass() {
    bool found[2] = {};
    ops::share_tasks(
        2, 1, [&](std::int64_t part, std::int64_t) { found[part] = (part == 0 ? real_median_ : imag_median_).finish_pass(); });
    return found[0] && found[1];
  }

  CellSums released() {
    CellSums sums;
    sums.cells = results_.cells.release(torch::kInt64);
    sums.averages = results_.averages.release(torch::kComplexDouble);
    sums.weights = results_.weights.release(torch::kDouble);
    sums.scatter = {real_median_.value(), imag_median_.value(), static_cast<std::int64_t>(real_median_.count())};
    if (options_.cell_statistics) {
      sums.samples = results_.samples.release(torch::kInt64);
      sums.real = results_.real.release(torch::kDouble);
      sums.imag = results_.imag.release(torch::kDouble);
    }
    return sums;
  }

  const GridCoords& coords_;
  const Visibilities& visibilities_;
  const ChannelMap& channel_map_;
  const CellSumOptions& options_;
  CellBox box_;
  StripMemory memory_;  // of samples: when they are summed, of the scatter of the cells
  Results results_;
  StreamMedian real_median_, imag_median_;
};

void check(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channel_map) {
  check_npix(coords);
  coords.check_data_fit(visibilities.baselines().max_abs_u(), visibilities.baselines().max_abs_v());
  if (channel_map.sources.empty()) throw ValueError("the channel map has no image channels; at least one is needed");
  for (const auto& sources : channel_map.sources) {
    if (sources.empty())
      throw ValueError("an image channel has no data channels; the channel map must name at least one for each");
    if (static_cast<std::int64_t>(sources.size()) * visibilities.nvis() > most_samples / 2) {
      throw DataError(fmt::format("{} x {} samples feed one image channel; gridding counts up to {}: average them in time first",
                                  sources.size(), visibilities.nvis(), most_samples / 2));
    }
  }
  channel_map.check_sources(visibilities.nchan());
}

}  // namespace

CellSums sum_cells(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channel_map,
                   const CellSumOptions& options) {
  check(coords, visibilities, channel_map);
  return Gridding(coords, visibilities, channel_map, options).sums();
}

}  // namespace mpol::gridding
