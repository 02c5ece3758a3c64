#include <mpol_cpp/gridding/strip_pass.h>

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t run_bytes = std::int64_t{4} << 20;
constexpr std::int64_t transformed_run_samples = std::int64_t{1} << 17;
constexpr std::int64_t near_samples = 4096;          // whose keys stay in the nearest cache
constexpr std::int64_t workers_with_huge_pages = 4;  // of more, the last pages would waste what memory is promised
constexpr std::int64_t most_buckets = 512;           // more would be written to in too many places at once

bool sorted_in_double(const Visibilities& visibilities) {
  return visibilities.weights().scalar_type() == torch::kDouble || visibilities.data().scalar_type() == torch::kComplexDouble;
}

/// The data and weights of a run, and what keeps them alive.
struct RunSamples {
  SampleBlock block;
  Tensor weights, data;
};

RunSamples samples_of(const Visibilities& visibilities, const SampleRun& run, const DataTransform& transform) {
  const auto row = [&](const Tensor& values) {
    return values.select(0, run.channel).narrow(0, run.begin, run.end - run.begin).to(torch::kCPU);
  };
  const auto weights = row(visibilities.weights());
  auto data = row(visibilities.data());
  if (transform) {
    const auto [u, v] = visibilities.baselines().block(run.channel, run.begin, run.end);
    data = transform(u, v, data).to(torch::kComplexDouble).contiguous();
  }
  return {{weights.const_data_ptr(), data.const_data_ptr(), weights.scalar_type() == torch::kDouble,
           data.scalar_type() == torch::kComplexDouble, run.partner ? -1.0 : 1.0},
          weights,
          data};
}

/// The samples of a block from the given one on.
SampleBlock from(const SampleBlock& block, std::int64_t sample) {
  const auto advanced = [sample](const void* values, std::size_t bytes) {
    return static_cast<const char*>(values) + static_cast<std::size_t>(sample) * bytes;
  };
  auto rest = block;
  rest.weights = advanced(block.weights, block.weights_are_double ? sizeof(double) : sizeof(float));
  rest.data = advanced(block.data, 2 * (block.data_are_double ? sizeof(double) : sizeof(float)));
  return rest;
}

/// The coordinates of a channel from the given sample on, as they are held: kernels widen them.
CoordinateBlock coordinates_from(const Baselines& baselines, std::int64_t channel, std::int64_t sample) {
  const bool are_double = baselines.u().scalar_type() == torch::kDouble;
  const auto first = (baselines.u().dim() == 2 && !baselines.shared() ? channel * baselines.nvis() : 0) + sample;
  const auto from_first = [&](const Tensor& values) {
    const auto bytes = static_cast<std::size_t>(first) * (are_double ? sizeof(double) : sizeof(float));
    return static_cast<const char*>(values.const_data_ptr()) + bytes;
  };
  return {from_first(baselines.u()), from_first(baselines.v()), are_double};
}

template <typename Work>
void each_worker(std::size_t workers, const Work& work) {
  at::parallel_for(0, static_cast<std::int64_t>(workers), 1, [&](std::int64_t first, std::int64_t last) {
    for (auto worker = first; worker < last; ++worker) work(worker);
  });
}

/// Rows of a bucket, as a power of two.
int bucket_shift(std::int64_t rows) {
  int shift = 0;
  while (rows > most_buckets << shift) ++shift;
  return shift;
}

}  // namespace

std::vector<SampleRun> sample_runs(const std::vector<std::int64_t>& channels, const Visibilities& visibilities,
                                   const CellSumOptions& options) {
  const auto bytes = sorted_in_double(visibilities) ? sizeof(SortedSample<double>) : sizeof(SortedSample<float>);
  const auto length = options.transform ? transformed_run_samples : run_bytes / static_cast<std::int64_t>(bytes);
  const auto nvis = visibilities.nvis();
  std::vector<SampleRun> runs;
  for (const bool partner : {false, true}) {
    if (partner && !options.hermitian_pairs) continue;
    for (const auto channel : channels) {
      for (std::int64_t begin = 0; begin < nvis; begin += length) {
        runs.push_back({channel, begin, std::min(begin + length, nvis), partner});
      }
    }
  }
  return runs;
}

StripPass::StripPass(const GridCoords& coords, std::int64_t first_row, std::int64_t last_row, std::int64_t samples,
                     std::int64_t workers, std::int64_t table_bytes)
    : coords_(coords),
      keys_(coords.npix(), last_row - first_row),
      first_row_(first_row),
      last_row_(last_row),
      kernels_(cell_kernels(selected_isa())),
      budget_(table_bytes),
      bucket_rows_shift_(bucket_shift(last_row - first_row)),
      bucket_rule_{static_cast<std::uint32_t>(first_row << keys_.row_shift),
                   static_cast<std::uint32_t>(((last_row - first_row) << keys_.row_shift) - 1),
                   keys_.row_shift + bucket_rows_shift_,
                   static_cast<std::uint32_t>(((last_row - first_row - 1) >> bucket_rows_shift_) + 1)},
      row_counts_(static_cast<std::size_t>(coords.npix()), 0),
      directory_(static_cast<std::size_t>((last_row - first_row) << (keys_.row_shift - keys_.leaf_shift))) {
  const auto cells = (last_row - first_row) << keys_.row_shift;
  const auto pages = workers <= workers_with_huge_pages ? Pages::huge : Pages::small;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    tables_.emplace_back(keys_, directory_.data(), row_counts_.data() + first_row, cells, std::min(cells, samples), budget_,
                         pages);
  }
}

StripPass::~StripPass() {
  each_worker(tables_.size(), [&](std::int64_t worker) { tables_[static_cast<std::size_t>(worker)].clear(); });
}

StripPass::SortedRun::SortedRun(std::int64_t most_samples, bool are_double_, std::int64_t workers, Scratch& scratch)
    : share_begins(static_cast<std::size_t>(workers) + 1),
      positions(static_cast<std::size_t>(workers)),
      bucket_begins(static_cast<std::size_t>(workers) + 1),
      are_double(are_double_) {
  const auto sample_bytes = are_double ? sizeof(SortedSample<double>) : sizeof(SortedSample<float>);
  const auto all_samples = static_cast<std::size_t>(most_samples + CellKernels::slack) * sample_bytes;
  auto* room = scratch.room(all_samples + static_cast<std::size_t>(most_samples) * sizeof(std::uint32_t));
  samples = room;
  keys = reinterpret_cast<std::uint32_t*>(room + all_samples);
}

void StripPass::locate(std::int64_t worker, const Visibilities& visibilities, const SampleRun& run, SortedRun& sorted) const {
  const auto begin = sorted.share_begins[static_cast<std::size_t>(worker)];
  const auto count = sorted.share_begins[static_cast<std::size_t>(worker) + 1] - begin;
  const auto& baselines = visibilities.baselines();
  const CellRule rule{baselines.wavelengths_per_unit(run.channel), coords_.du(), static_cast<std::int32_t>(keys_.npix),
                      keys_.row_shift, run.partner};
  auto* keys = sorted.keys + begin;
  auto& counts = sorted.positions[static_cast<std::size_t>(worker)];
  counts.assign(bucket_rule_.buckets + 1, 0);
  for (std::int64_t done = 0; done < count; done += near_samples) {
    const auto part = std::min(near_samples, count - done);
    kernels_.locate(coordinates_from(baselines, run.channel, run.begin + begin + done), part, rule, keys + done);
    kernels_.count(keys + done, part, bucket_rule_, counts.data());
  }
}

void StripPass::lay_out(SortedRun& sorted) const {
  const auto workers = tables_.size();
  std::uint32_t place = 0;
  const auto lay_out_bucket = [&](std::size_t bucket) {
    for (auto& share : sorted.positions) place += std::exchange(share[bucket], place);
  };
  for (std::size_t worker = 0; worker < workers; ++worker) {
    sorted.bucket_begins[worker] = place;
    for (auto bucket = worker; bucket < bucket_rule_.buckets; bucket += workers) lay_out_bucket(bucket);
  }
  sorted.bucket_begins[workers] = place;
  lay_out_bucket(bucket_rule_.buckets);
}

void StripPass::scatter(std::int64_t worker, const SampleBlock& block, SortedRun& sorted) const {
  const auto begin = sorted.share_begins[static_cast<std::size_t>(worker)];
  const auto count = sorted.share_begins[static_cast<std::size_t>(worker) + 1] - begin;
  kernels_.scatter(sorted.keys + begin, from(block, begin), count, bucket_rule_,
                   sorted.positions[static_cast<std::size_t>(worker)].data(), sorted.samples);
}

void StripPass::accumulate(std::int64_t worker, const SortedRun& sorted) {
  const auto own = static_cast<std::size_t>(worker);
  kernels_.accumulate(tables_[own], sorted.samples, sorted.bucket_begins[own], sorted.bucket_begins[own + 1], sorted.are_double);
}

bool StripPass::full() const {
  return std::any_of(tables_.begin(), tables_.end(), [](const CellTable& table) { return table.full; });
}

bool StripPass::run(const Visibilities& visibilities, const std::vector<SampleRun>& runs, const DataTransform& transform,
                    Scratch& scratch) {
  const auto workers = tables_.size();
  // A transform's data are complex128.
  SortedRun sorted(runs.front().end - runs.front().begin, transform || sorted_in_double(visibilities),
                   static_cast<std::int64_t>(workers), scratch);
  for (const auto& run : runs) {
    const auto samples = samples_of(visibilities, run, transform);
    for (std::size_t worker = 0; worker <= workers; ++worker) {
      sorted.share_begins[worker] =
          (run.end - run.begin) * static_cast<std::int64_t>(worker) / static_cast<std::int64_t>(workers);
    }
    // The cells of a run are found in one step with the sums of the run before.
    each_worker(workers, [&](std::int64_t worker) {
      accumulate(worker, sorted);
      locate(worker, visibilities, run, sorted);
    });
    if (full()) return false;
    lay_out(sorted);
    each_worker(workers, [&](std::int64_t worker) { scatter(worker, samples.block, sorted); });
  }
  each_worker(workers, [&](std::int64_t worker) { accumulate(worker, sorted); });
  return !full();
}

}  // namespace mpol::gridding
