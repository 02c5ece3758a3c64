#include <mpol_cpp/gridding/strip_pass.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/Parallel.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t run_samples = std::int64_t{1} << 19;
constexpr std::int64_t transformed_run_samples = std::int64_t{1} << 17;
constexpr std::int64_t block_samples = std::int64_t{1} << 14;
constexpr std::uint8_t nobody = 255;

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

/// Deals the rows of the strip to the workers in turn.
std::vector<std::uint8_t> deal_rows(std::int64_t npix, std::int64_t first, std::int64_t last, std::int64_t workers) {
  std::vector<std::uint8_t> owner(static_cast<std::size_t>(npix), nobody);
  for (auto row = first; row < last; ++row) owner[static_cast<std::size_t>(row)] = static_cast<std::uint8_t>(row % workers);
  return owner;
}

}  // namespace

std::vector<SampleRun> sample_runs(const std::vector<std::int64_t>& channels, std::int64_t nvis, const CellSumOptions& options) {
  const auto length = options.transform ? transformed_run_samples : run_samples;
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

StripPass::StripPass(const GridCoords& coords, std::int64_t first_row, std::int64_t last_row, std::int64_t workers,
                     std::int64_t table_bytes)
    : coords_(coords),
      keys_(coords.npix(), last_row - first_row),
      first_row_(first_row),
      last_row_(last_row),
      kernels_(cell_kernels(selected_isa())),
      budget_(table_bytes),
      owner_of_row_(deal_rows(coords.npix(), first_row, last_row, workers)),
      row_counts_(static_cast<std::size_t>(coords.npix()), 0),
      directory_(static_cast<std::size_t>((last_row - first_row) << (keys_.row_shift - keys_.leaf_shift))),
      picks_(static_cast<std::size_t>(workers)) {
  const auto first_key = static_cast<std::uint32_t>(first_row << keys_.row_shift);
  const auto most_cells = (last_row - first_row) << keys_.row_shift;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    tables_.emplace_back(keys_, directory_.data(), first_key, row_counts_.data(), most_cells, budget_);
  }
}

void StripPass::locate(const Visibilities& visibilities, const SampleRun& run, std::int64_t worker, std::uint32_t* keys) const {
  const CellRule rule{coords_.du(), static_cast<std::int32_t>(keys_.npix), keys_.row_shift, run.partner};
  const auto workers = static_cast<std::int64_t>(tables_.size());
  for (auto begin = run.begin + worker * block_samples; begin < run.end; begin += workers * block_samples) {
    const auto end = std::min(begin + block_samples, run.end);
    const auto [u, v] = visibilities.baselines().block(run.channel, begin, end);
    kernels_.locate(u.const_data_ptr<double>(), v.const_data_ptr<double>(), end - begin, rule, keys + (begin - run.begin));
  }
}

void StripPass::accumulate(std::int64_t worker, const SampleRun& run, const SampleBlock& samples, const std::uint32_t* keys) {
  auto& table = tables_[static_cast<std::size_t>(worker)];
  auto& picks = picks_[static_cast<std::size_t>(worker)];
  const auto all = run.end - run.begin;
  picks.resize(static_cast<std::size_t>(block_samples));
  for (std::int64_t begin = 0; begin < all && !table.full; begin += block_samples) {
    const auto count = std::min(block_samples, all - begin);
    const auto block = from(samples, begin);
    if (one_table_takes_all()) {
      kernels_.accumulate(table, keys + begin, nullptr, count, block);
      continue;
    }
    const auto picked = kernels_.select(keys + begin, count, keys_.row_shift, owner_of_row_.data(),
                                        static_cast<std::uint8_t>(worker), picks.data());
    kernels_.accumulate(table, keys + begin, picks.data(), picked, block);
  }
}

bool StripPass::full() const {
  return std::any_of(tables_.begin(), tables_.end(), [](const CellTable& table) { return table.full; });
}

bool StripPass::run(const Visibilities& visibilities, const std::vector<SampleRun>& runs, const DataTransform& transform) {
  const auto workers = static_cast<std::int64_t>(tables_.size());
  const auto longest = runs.front().end - runs.front().begin;
  PageArray<std::uint32_t> keys(static_cast<std::size_t>(longest)), next_keys(static_cast<std::size_t>(longest));
  auto *present = keys.data(), *next = next_keys.data();
  const auto each_worker = [&](const auto& work) {
    at::parallel_for(0, workers, 1, [&](std::int64_t first, std::int64_t last) {
      for (auto worker = first; worker < last; ++worker) work(worker);
    });
  };
  each_worker([&](std::int64_t worker) { locate(visibilities, runs.front(), worker, present); });
  for (std::size_t i = 0; i < runs.size() && !full(); ++i) {
    const auto samples = samples_of(visibilities, runs[i], transform);
    each_worker([&](std::int64_t worker) {
      accumulate(worker, runs[i], samples.block, present);
      if (i + 1 < runs.size()) locate(visibilities, runs[i + 1], worker, next);
    });
    std::swap(present, next);
  }
  return !full();
}

}  // namespace mpol::gridding
