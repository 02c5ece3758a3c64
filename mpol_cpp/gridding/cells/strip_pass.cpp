#include <mpol_cpp/gridding/cells/strip_pass.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace mpol::gridding {
namespace {

constexpr std::int64_t run_bytes = std::int64_t{4} << 20;
constexpr std::int64_t transformed_run_samples = std::int64_t{1} << 17;
constexpr std::int64_t near_samples = 256;  // whose keys stay in the nearest cache
constexpr std::int64_t most_buckets = 512;  // more would be written to in too many places at once

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
void each_worker(std::int64_t workers, const Work& work) {
  ops::share_tasks(
      workers, 1, [&](std::int64_t worker, std::int64_t) { work(worker); }, WorkerPool::Order::near);
}

/// The first samples of what each of some workers does, and the end.
std::vector<std::int64_t> shares(std::int64_t samples, std::int64_t workers) {
  std::vector<std::int64_t> begins;
  for (std::int64_t worker = 0; worker < workers; ++worker) begins.push_back(samples * worker / workers);
  begins.push_back(samples);
  return begins;
}

std::vector<SampleRun> runs_of(const std::vector<std::int64_t>& channels, const Visibilities& visibilities,
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

/// Makes as many buckets as can be written to at once, of whole words of ranks.
BucketRule bucket_rule(std::int64_t first_key, std::int64_t keys) {
  int shift = std::countr_zero(RankWord::keys);
  while ((keys - 1) >> shift >= most_buckets) ++shift;
  return {static_cast<std::uint32_t>(first_key), static_cast<std::uint32_t>(keys - 1), shift + CellTable::place_shift,
          static_cast<std::uint32_t>(((keys - 1) >> shift) + 1)};
}

/// A table of so many cells, without ranks: entries of zeros, and totals that kernels begin.
CellTable empty_table(std::int64_t cells, Scratch& memory) {
  auto* totals = reinterpret_cast<CellTotals*>(memory.room(static_cast<std::size_t>(cells * CellTable::bytes_per_cell)));
  auto* entries = reinterpret_cast<CellEntry*>(totals + cells);
  std::fill_n(entries, cells, CellEntry{});
  return {totals, entries, nullptr};
}

}  // namespace

SampleSource::SampleSource(const std::vector<std::int64_t>& channels, const Visibilities& visibilities_,
                           const CellSumOptions& options, std::int64_t workers_)
    : visibilities(visibilities_),
      transform(options.transform),
      runs(runs_of(channels, visibilities_, options)),
      workers(workers_) {}

/// Calls use(keys, count) with the keys of a worker's samples, some at a time.
template <typename Use>
void each_keys(std::int64_t worker, const CellBox& box, const SampleSource& source, const Use& use) {
  const auto kernels = cell_kernels(selected_isa());
  const auto& baselines = source.visibilities.baselines();
  std::uint32_t near[near_samples];
  for (const auto& run : source.runs) {
    const auto rule = box.rule(baselines.wavelengths_per_unit(run.channel), run.partner);
    const auto begins = shares(run.end - run.begin, source.workers);
    const auto end = run.begin + begins[static_cast<std::size_t>(worker) + 1];
    for (auto sample = run.begin + begins[static_cast<std::size_t>(worker)]; sample < end; sample += near_samples) {
      const auto count = std::min(near_samples, end - sample);
      kernels.locate(coordinates_from(baselines, run.channel, sample), count, rule, near);
      use(static_cast<const std::uint32_t*>(near), count);
    }
  }
}

Occupancy occupied_keys(const CellBox& box, std::int64_t first_key, std::int64_t keys, const SampleSource& source) {
  const PageArray<std::uint8_t> marks(static_cast<std::size_t>(keys));
  each_worker(source.workers, [&](std::int64_t worker) {
    each_keys(worker, box, source, [&](const std::uint32_t* near, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto key = near[i] - static_cast<std::uint32_t>(first_key);
        if (key < static_cast<std::uint64_t>(keys)) std::atomic_ref(marks.data()[key]).store(1, std::memory_order_relaxed);
      }
    });
  });
  return {keys, [&](std::int64_t key) { return marks.data()[key] != 0; }};
}

std::vector<std::uint32_t> sorted_keys(const CellBox& box, const SampleSource& source) {
  std::vector<std::uint32_t> keys;
  for (std::int64_t worker = 0; worker < source.workers; ++worker) {
    each_keys(worker, box, source,
              [&](const std::uint32_t* near, std::int64_t count) { keys.insert(keys.end(), near, near + count); });
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

StripPass::StripPass(const CellBox& box, std::int64_t first_key, std::int64_t keys, std::int64_t cells, StripMemory& memory)
    : box_(box),
      first_key_(first_key),
      keys_(keys),
      kernels_(cell_kernels(selected_isa())),
      bucket_rule_(bucket_rule(first_key, keys)),
      memory_(memory),
      table_(empty_table(cells, memory.table)) {}

StripPass::StripPass(const CellBox& box, StripMemory& memory) : StripPass(box, 0, box.cells(), box.cells(), memory) {}

StripPass::StripPass(const CellBox& box, std::int64_t first_key, const Occupancy& occupied, std::int64_t first_word,
                     std::int64_t last_word, StripMemory& memory)
    : StripPass(box, first_key + first_word * RankWord::keys, (last_word - first_word) * RankWord::keys,
                occupied.words()[last_word].before - occupied.words()[first_word].before, memory) {
  words_ = table_.ranks = occupied.words() + first_word;
  word_count_ = last_word - first_word;
}

StripPass::SortedRun::SortedRun(const SampleSource& source, Scratch& memory)
    : counts(static_cast<std::size_t>(source.workers)),
      positions(static_cast<std::size_t>(source.workers)),
      bucket_begins(static_cast<std::size_t>(source.workers) + 1),
      // A transform's data are complex128.
      are_double(source.transform || sorted_in_double(source.visibilities)),
      sample_bytes(are_double ? sizeof(SortedSample<double>) : sizeof(SortedSample<float>)) {
  const auto most_samples = source.runs.front().end - source.runs.front().begin;
  const auto all_bytes = (most_samples + CellKernels::slack) * sample_bytes;
  samples = memory.room(static_cast<std::size_t>(all_bytes) + static_cast<std::size_t>(most_samples) * sizeof(std::uint32_t));
  keys = reinterpret_cast<std::uint32_t*>(samples + all_bytes);
}

void StripPass::locate(std::int64_t worker, const Visibilities& visibilities, const SampleRun& run, SortedRun& sorted) const {
  const auto begin = sorted.share_begins[static_cast<std::size_t>(worker)];
  const auto count = sorted.share_begins[static_cast<std::size_t>(worker) + 1] - begin;
  const auto& baselines = visibilities.baselines();
  const auto rule = box_.rule(baselines.wavelengths_per_unit(run.channel), run.partner);
  auto* keys = sorted.keys + begin;
  auto& counts = sorted.counts[static_cast<std::size_t>(worker)];
  counts.assign(bucket_rule_.buckets + 1, 0);
  for (std::int64_t done = 0; done < count; done += near_samples) {
    const auto part = std::min(near_samples, count - done);
    kernels_.locate(coordinates_from(baselines, run.channel, run.begin + begin + done), part, rule, keys + done);
    kernels_.count(keys + done, part, bucket_rule_, counts.data());
  }
}

void StripPass::lay_out(SortedRun& sorted) const {
  const auto workers = sorted.positions.size();
  std::vector<std::int64_t> bucket_ends;
  std::int64_t samples = 0;
  for (auto& share : sorted.positions) share.resize(bucket_rule_.buckets + 1);
  for (std::size_t bucket = 0; bucket <= bucket_rule_.buckets; ++bucket) {
    for (std::size_t share = 0; share < workers; ++share) {
      sorted.positions[share][bucket] = sorted.samples + samples * sorted.sample_bytes;
      samples += sorted.counts[share][bucket];
    }
    bucket_ends.push_back(samples);
  }
  bucket_ends.pop_back();  // what lies outside the strip is nobody's
  const auto ideal_ends = shares(bucket_ends.back(), static_cast<std::int64_t>(workers));
  for (std::size_t worker = 1; worker <= workers; ++worker) {
    sorted.bucket_begins[worker] = *std::lower_bound(bucket_ends.begin(), bucket_ends.end(), ideal_ends[worker]);
  }
}

void StripPass::scatter(std::int64_t worker, const SampleBlock& block, SortedRun& sorted) const {
  const auto begin = sorted.share_begins[static_cast<std::size_t>(worker)];
  const auto count = sorted.share_begins[static_cast<std::size_t>(worker) + 1] - begin;
  kernels_.scatter(sorted.keys + begin, from(block, begin), count, bucket_rule_,
                   sorted.positions[static_cast<std::size_t>(worker)].data());
}

void StripPass::accumulate(std::int64_t worker, const SortedRun& sorted) const {
  const auto own = static_cast<std::size_t>(worker);
  kernels_.accumulate(table_, sorted.samples, sorted.bucket_begins[own], sorted.bucket_begins[own + 1], sorted.are_double);
}

void StripPass::run(const SampleSource& source) {
  const auto workers = source.workers;
  SortedRun sorted(source, memory_.samples);
  for (const auto& run : source.runs) {
    const auto samples = samples_of(source.visibilities, run, source.transform);
    sorted.share_begins = shares(run.end - run.begin, workers);
    // The keys of a run are found in one step with the sums of the run before.
    each_worker(workers, [&](std::int64_t worker) {
      accumulate(worker, sorted);
      locate(worker, source.visibilities, run, sorted);
    });
    lay_out(sorted);
    each_worker(workers, [&](std::int64_t worker) { scatter(worker, samples.block, sorted); });
  }
  each_worker(workers, [&](std::int64_t worker) { accumulate(worker, sorted); });
  if (table_.ranks != nullptr) return;
  found_.emplace(keys_, [&](std::int64_t key) { return table_.entries[key].minus_samples != 0; });
  words_ = found_->words();
  word_count_ = found_->size();
}

}  // namespace mpol::gridding
