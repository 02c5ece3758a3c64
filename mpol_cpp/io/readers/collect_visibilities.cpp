#include <mpol_cpp/io/readers/collect_visibilities.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/ops/memory/huge_pages.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::io {
namespace {

[[noreturn]] void refuse_empty(const ReaderShape& shape, const DroppedSamples& dropped) {
  throw DataError(
      fmt::format("no visibilities are left of {}: {} are in flagged rows, {} autocorrelations, {} flagged, {} without "
                  "weight, {} not finite, {} in incomplete rows; select others, or unflag some",
                  shape.samples(), dropped.flagged_rows, dropped.autocorrelations, dropped.flagged, dropped.without_weight,
                  dropped.not_finite, dropped.incomplete_rows));
}

/// Arrays for as many samples as there may be: pages that are never written to cost no memory.
class SampleStore {
 public:
  SampleStore(std::int64_t rows, std::int64_t nchan, SampleOrigins origins, const ArrayRoom& room)
      : rows_(rows),
        nchan_(nchan),
        u_(room.empty({rows}, torch::kFloat64)),
        v_(room.empty({rows}, torch::kFloat64)),
        data_(room.empty({rows * nchan}, torch::kComplexFloat)),
        weights_(room.empty({rows * nchan}, torch::kFloat32)) {
    for (const auto* array : {&u_, &v_, &data_, &weights_})
      if (!room.is_on_disk()) ops::prefer_huge_pages(array->data_ptr(), array->nbytes());
    if (origins == SampleOrigins::leave) return;
    windows_ = at::empty({rows}, torch::kInt32);
    observations_ = at::empty({rows}, torch::kInt32);
    if (origins == SampleOrigins::with_times) times_ = at::empty({rows}, torch::kFloat64);
  }

  std::int64_t kept() const { return kept_; }
  double* u() { return u_.mutable_data_ptr<double>(); }
  double* v() { return v_.mutable_data_ptr<double>(); }
  c10::complex<float>* data(std::int64_t channel) { return data_.mutable_data_ptr<c10::complex<float>>() + channel * rows_; }
  float* weights(std::int64_t channel) { return weights_.mutable_data_ptr<float>() + channel * rows_; }
  void set_kept(std::int64_t kept) { kept_ = kept; }

  /// Says where samples [begin, kept) came from.
  void note_origin(std::int64_t begin, const ReaderWindow& window) {
    if (kept_ == begin) return;
    const double frequency = window.frequencies.defined() ? window.frequencies.mean().item<double>() : 0;
    if (!ranges_.empty() && ranges_.back().window == window.id) ranges_.back().end = kept_;
    else ranges_.push_back({window.id, begin, kept_, frequency});
    if (windows_.defined()) windows_.narrow(0, begin, kept_ - begin).fill_(window.id);
  }
  /// Null where they are not wanted.
  std::int32_t* observations() { return observations_.defined() ? observations_.mutable_data_ptr<std::int32_t>() : nullptr; }

  /// Null where they are not wanted, or some are not known.
  double* times(const double* of_block) {
    if (of_block == nullptr) times_.reset();
    return times_.defined() ? times_.mutable_data_ptr<double>() : nullptr;
  }

  Tensor kept_u() const { return u_.narrow(0, 0, kept_); }
  Tensor kept_v() const { return v_.narrow(0, 0, kept_); }
  Tensor kept_data() { return closed_up<c10::complex<float>>(data_); }
  Tensor kept_weights() { return closed_up<float>(weights_); }
  const std::vector<WindowRange>& ranges() const { return ranges_; }
  Tensor kept_windows() const { return windows_.defined() ? windows_.narrow(0, 0, kept_) : Tensor(); }
  Tensor kept_times() const { return times_.defined() ? times_.narrow(0, 0, kept_) : Tensor(); }
  Tensor kept_observations() const { return observations_.defined() ? observations_.narrow(0, 0, kept_) : Tensor(); }

 private:
  /// (nchan, kept), the channels moved together where they stand.
  template <typename Value>
  Tensor closed_up(Tensor& values) const {
    auto* first = values.mutable_data_ptr<Value>();
    for (std::int64_t c = 1; c < nchan_; ++c) {
      std::memmove(static_cast<void*>(first + c * kept_), first + c * rows_, static_cast<std::size_t>(kept_) * sizeof(Value));
    }
    return values.narrow(0, 0, nchan_ * kept_).view({nchan_, kept_});
  }

  std::int64_t rows_, nchan_, kept_ = 0;
  Tensor u_, v_, data_, weights_, windows_, observations_, times_;
  std::vector<WindowRange> ranges_;
};

std::int64_t rows_of(const ReaderShape& shape) {
  std::int64_t rows = 0;
  for (const auto& window : shape.windows) rows += window.rows;
  return rows;
}

constexpr double coordinate_bytes = 2 * sizeof(double), value_bytes = 3 * sizeof(float);  // of a row, of a sample

/// A block's arrays as they lie in memory.
struct BlockView {
  explicit BlockView(const RowBlock& block)
      : data_tensor(block.data.to(torch::kComplexFloat).contiguous()),
        weight_tensor(block.weights.to(torch::kFloat32).contiguous()),
        rows(data_tensor.size(0)),
        nchan(data_tensor.size(1)),
        u(block.u.const_data_ptr<double>()),
        v(block.v.const_data_ptr<double>()),
        data(data_tensor.const_data_ptr<c10::complex<float>>()),
        weights(weight_tensor.const_data_ptr<float>()),
        observations(block.observations.defined() ? block.observations.const_data_ptr<std::int32_t>() : nullptr),
        times(block.times.defined() ? block.times.const_data_ptr<double>() : nullptr) {}

  std::int32_t observation(std::int64_t row) const { return observations == nullptr ? -1 : observations[row]; }

  Tensor data_tensor, weight_tensor;
  std::int64_t rows, nchan;
  const double *u, *v;
  const c10::complex<float>* data;
  const float* weights;
  const std::int32_t* observations;
  const double* times;
};

/// Rows worth a thread.
std::int64_t grain_of(const BlockView& block) { return std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, block.nchan)); }

/// How many samples of the rows before each of a block have a weight, and of all.
std::vector<std::int64_t> kept_before(const BlockView& block) {
  std::vector<std::int64_t> kept(static_cast<std::size_t>(block.rows) + 1);
  ops::share_ranges(block.rows, grain_of(block), [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) {
      std::int64_t count = 0;
      for (std::int64_t c = 0; c < block.nchan; ++c) count += block.weights[row * block.nchan + c] > 0;
      kept[static_cast<std::size_t>(row) + 1] = count;
    }
  });
  std::partial_sum(kept.begin(), kept.end(), kept.begin());
  return kept;
}

/// Appends the samples of a block that have a weight. @param counts  of each channel, to which they are added
void append_samples(SampleStore& store, const BlockView& block, const ReaderWindow& window, std::vector<std::int64_t>& counts) {
  auto *u = store.u(), *v = store.v();
  auto* data = store.data(0);
  auto* weights = store.weights(0);
  auto* observations = store.observations();
  auto* times = store.times(block.times);
  const auto* scales = window.wavelengths_per_unit.data();
  const auto begin = store.kept();
  const auto kept = kept_before(block);
  std::mutex mutex;
  ops::share_ranges(block.rows, grain_of(block), [&](std::int64_t first, std::int64_t last) {
    std::vector<std::int64_t> own(counts.size());
    for (auto row = first; row < last; ++row) {
      const auto number = static_cast<std::size_t>(row);
      const auto from = begin + kept[number], to = begin + kept[number + 1];
      auto at = from;
      for (std::int64_t c = 0; c < block.nchan; ++c) {
        const auto sample = row * block.nchan + c;
        if (!(block.weights[sample] > 0)) continue;
        u[at] = block.u[row] * scales[c];
        v[at] = block.v[row] * scales[c];
        data[at] = block.data[sample];
        weights[at] = block.weights[sample];
        ++own[static_cast<std::size_t>(c)];
        ++at;
      }
      if (observations != nullptr) std::fill(observations + from, observations + to, block.observation(row));
      if (times != nullptr) std::fill(times + from, times + to, block.times[row]);
    }
    const std::lock_guard lock(mutex);
    std::transform(counts.begin(), counts.end(), own.begin(), counts.begin(), std::plus<>());
  });
  store.set_kept(begin + kept.back());
  store.note_origin(begin, window);
}

/// What u and v of a block are multiplied by to be metres: exactly 1 where they are.
double metres_per_unit(const ReaderWindow& window) {
  return window.wavelengths_per_unit.front() / units::metres_to_lambda(1, window.frequencies[0].item<double>());
}

/// Appends the rows of a block that are whole. @returns good samples in those that are not
std::int64_t append_rows(SampleStore& store, const BlockView& block, const ReaderWindow& window) {
  const double metres = metres_per_unit(window);
  const auto begin = store.kept();
  std::int64_t incomplete = 0;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const auto* weights = block.weights + row * block.nchan;
    const auto good = std::count_if(weights, weights + block.nchan, [](float weight) { return weight > 0; });
    if (good < block.nchan) {
      incomplete += good;
      continue;
    }
    const auto kept = store.kept();
    store.u()[kept] = block.u[row] * metres;
    store.v()[kept] = block.v[row] * metres;
    for (std::int64_t c = 0; c < block.nchan; ++c) {
      store.data(c)[kept] = block.data[row * block.nchan + c];
      store.weights(c)[kept] = weights[c];
    }
    if (auto* observations = store.observations(); observations != nullptr) observations[kept] = block.observation(row);
    if (auto* times = store.times(block.times); times != nullptr) times[kept] = block.times[row];
    store.set_kept(kept + 1);
  }
  store.note_origin(begin, window);
  return incomplete;
}

/// @throws DataError unless all windows can be planes of one cube
void check_one_cube(const std::vector<ReaderWindow>& windows) {
  const auto& first = windows.front();
  const auto refuse = [&](const ReaderWindow& other, const std::string& why) {
    throw DataError(fmt::format("spectral windows {} and {} make no cube: {}; choose one (--spw), or make a continuum image",
                                first.id, other.id, why));
  };
  for (const auto& window : windows) {
    if (!window.frequencies.defined()) {
      throw DataError(fmt::format("spectral window {} has no frequencies, which a cube needs", window.id));
    }
    if (window.frame != first.frame) {
      refuse(window, fmt::format("their frequencies are in different frames, {} and {}", first.frame, window.frame));
    }
    if (window.nchan() != first.nchan()) {
      refuse(window, fmt::format("they have {} and {} channels", first.nchan(), window.nchan()));
    }
    const double apart = (window.frequencies - first.frequencies).abs().max().item<double>();
    if (apart > 0.01 * std::abs(first.channel_width)) {
      refuse(window, fmt::format("their channels are up to {:.6g} Hz apart", apart));
    }
  }
}

/// Weighs the channels' frequencies with the samples in them.
struct MeanFrequency {
  double sum = 0, samples = 0;
  bool known = true;

  void add(const ReaderWindow& window, const std::vector<std::int64_t>& counts) {
    known = known && window.frequencies.defined();
    for (std::size_t c = 0; known && c < counts.size(); ++c) {
      const auto count = static_cast<double>(counts[c]);
      sum += count * window.frequencies[static_cast<std::int64_t>(c)].item<double>();
      samples += count;
    }
  }
};

}  // namespace

double bytes_of_samples(const ReaderShape& shape) {
  return (coordinate_bytes + value_bytes) * static_cast<double>(shape.samples());
}

double bytes_of_cube(const ReaderShape& shape) {
  return coordinate_bytes * static_cast<double>(rows_of(shape)) + value_bytes * static_cast<double>(shape.samples());
}

CollectedVisibilities collect_samples(VisibilityReader& reader, SampleOrigins origins, const ArrayRoom& room) {
  const auto& shape = reader.shape();
  SampleStore store(shape.samples(), 1, origins, room);
  std::vector<std::vector<std::int64_t>> counts;
  for (const auto& window : shape.windows) counts.emplace_back(window.channels.size(), 0);
  while (const auto block = reader.next()) {
    const auto index = static_cast<std::size_t>(block->window);
    append_samples(store, BlockView(*block), shape.windows[index], counts[index]);
  }
  if (store.kept() == 0) refuse_empty(shape, reader.dropped());
  MeanFrequency mean;
  for (std::size_t i = 0; i < counts.size(); ++i) mean.add(shape.windows[i], counts[i]);
  Visibilities visibilities(Baselines::in_lambda(store.kept_u(), store.kept_v()), store.kept_data(), store.kept_weights());
  if (mean.known) visibilities.set_frequencies(at::full({1}, mean.sum / mean.samples, torch::kFloat64));
  visibilities.set_observation(shape.observation);
  return {std::move(visibilities), store.kept_windows(), store.kept_observations(),
          store.kept_times(),      reader.dropped(),     store.ranges()};
}

CollectedVisibilities collect_cube(VisibilityReader& reader, SampleOrigins origins, const ArrayRoom& room) {
  const auto& shape = reader.shape();
  check_one_cube(shape.windows);
  SampleStore store(rows_of(shape), shape.windows.front().nchan(), origins, room);
  std::int64_t incomplete = 0;
  while (const auto block = reader.next()) {
    incomplete += append_rows(store, BlockView(*block), shape.windows[static_cast<std::size_t>(block->window)]);
  }
  auto dropped = reader.dropped();
  dropped.incomplete_rows += incomplete;
  if (store.kept() == 0) refuse_empty(shape, dropped);
  Visibilities visibilities(Baselines::in_metres(store.kept_u(), store.kept_v(), shape.windows.front().frequencies),
                            store.kept_data(), store.kept_weights());
  visibilities.set_observation(shape.observation);
  return {std::move(visibilities), store.kept_windows(), store.kept_observations(), store.kept_times(), dropped, store.ranges()};
}

}  // namespace mpol::io
