#include <mpol_cpp/io/measurement_set/measurement_set.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <future>
#include <mutex>
#include <optional>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/measurement_set/hand_combination.h>
#include <mpol_cpp/io/measurement_set/set_table.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::io {
namespace {

using Complex = std::complex<float>;

constexpr std::int64_t block_values = std::int64_t{1} << 19;  // complex values that are read at once: 4 MiB

/// "2012-06-02T05:43:21" for a TIME of the main table: seconds of the modified Julian date.
std::string date_of(double time) {
  constexpr std::int64_t days_to_1970 = 40587, day = 86400;
  const double seconds = time - static_cast<double>(days_to_1970 * day);
  if (!(std::abs(seconds) < 1e12)) return {};
  const std::chrono::sys_seconds moment{std::chrono::seconds(static_cast<std::int64_t>(std::floor(seconds)))};
  const auto midnight = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(midnight);
  const std::chrono::hh_mm_ss clock(moment - midnight);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

bool same_center(const SetField& a, const SetField& b) {
  constexpr double tolerance = 1e-9;  // radian
  Observation of_a, of_b;
  of_a.right_ascension = a.right_ascension, of_a.declination = a.declination;
  of_b.right_ascension = b.right_ascension, of_b.declination = b.declination;
  return phase_center_distance(of_a, of_b).value_or(0) <= tolerance;
}

/// @throws DataError where rows are of fields with different phase centres
void check_one_field(const std::filesystem::path& path, const std::vector<SetField>& fields) {
  const auto& first = fields.front();
  if (std::all_of(fields.begin(), fields.end(), [&](const SetField& field) { return same_center(first, field); })) return;
  std::vector<std::string> list;
  list.reserve(fields.size());
  for (const auto& field : fields) list.push_back(fmt::format("{} {} ({} rows)", field.id, field.name, field.rows));
  throw DataError(fmt::format("{}: has several fields: {}; one can be imaged at a time: choose it by --select \"FIELD_ID == {}\"",
                              path.string(), fmt::join(list, ", "), first.id));
}

class MeasurementSetReader final : public VisibilityReader {
 public:
  MeasurementSetReader(const std::filesystem::path& path, const MeasurementSetOptions& options)
      : path_(path), options_(options), table_(path, {options.select, options.column, options.windows, options.tracks}) {
    check_one_field(path_, table_.fields());
    shape_.column = fmt::format("{} ({})", table_.column(), table_.column_reason());
    for (std::size_t part = 0; part < table_.parts().size(); ++part) add_window(part);
    if (windows_.empty()) {
      throw DataError(
          fmt::format("{}: no channel of the selected windows lies in the range asked for; widen it", path_.string()));
    }
    describe();
  }

  const ReaderShape& shape() const override { return shape_; }
  const DroppedSamples& dropped() const override { return dropped_; }

  std::optional<RowBlock> next() override {
    if (!ahead_.valid()) read_ahead();
    if (!ahead_.valid()) return std::nullopt;
    const auto read = ahead_.get();
    read_ahead();
    return combined(read.window, *read.cells);
  }

 private:
  /// Where the rows of a window of the shape come from.
  struct Source {
    std::size_t part;           ///< of the table
    std::int64_t ncorr, nchan;  ///< of its cells
    HandPair hands;
  };

  /// Cells of a block, and the window of the shape that they are of.
  struct ReadCells {
    std::size_t window;
    const SetCells* cells;
  };

  /// Begins to read the next block, if there is one: beside whatever is done with the last, where there are threads for it.
  void read_ahead() {
    while (window_ < windows_.size() && begin_ >= shape_.windows[window_].rows) ++window_, begin_ = 0;
    if (window_ == windows_.size()) return;
    const auto index = windows_[window_].part;
    const auto& part = table_.parts()[index];
    const auto most = std::max<std::int64_t>(1, block_values / (part.ncorr() * part.nchan()));
    const auto begin = begin_, count = std::min(most, part.rows - begin);
    const auto policy = ops::sharing_threads() > 1 ? std::launch::async : std::launch::deferred;
    ahead_ = std::async(policy, [this, window = window_, index, begin, count] {
      return ReadCells{window, &table_.read(index, begin, count)};
    });
    begin_ += count;
  }

  void add_window(std::size_t index) {
    const auto& part = table_.parts()[index];
    const auto& description = part.description;
    const auto hands = hands_for(description.correlations, options_.polarization);
    if (!hands) {
      throw DataError(
          fmt::format("{}: spectral window {} has the correlations {}, of which the wanted polarisation cannot be made; "
                      "choose another one (--stokes), other windows (--spw), or --hands one",
                      path_.string(), description.window, correlation_names(description.correlations)));
    }
    ReaderWindow window;
    window.channels =
        chosen_channels(description.frequencies, options_.channels, description.window, table_.fields().front().rest_frequency);
    if (window.channels.empty()) return;
    std::vector<double> frequencies;
    for (const auto channel : window.channels) frequencies.push_back(description.frequencies[static_cast<std::size_t>(channel)]);
    for (const double frequency : frequencies) window.wavelengths_per_unit.push_back(units::metres_to_lambda(1, frequency));
    window.id = description.window;
    window.rows = part.rows;
    window.frequencies = at::tensor(frequencies, torch::kFloat64);
    window.channel_width = description.channel_width;
    window.frame = description.frame;
    shape_.windows.push_back(std::move(window));
    windows_.push_back({index, part.ncorr(), part.nchan(), *hands});
  }

  void describe() {
    const auto& field = table_.fields().front();
    auto& observation = shape_.observation;
    observation.right_ascension = field.right_ascension;
    observation.declination = field.declination;
    observation.object = field.name;
    observation.telescope = table_.telescope();
    observation.date = date_of(table_.earliest());
    observation.stokes = stokes_of(options_.polarization.polarization);
    observation.rest_frequency = options_.channels.rest_frequency ? options_.channels.rest_frequency : field.rest_frequency;
    if (field.direction_frame != "J2000" && field.direction_frame != "ICRS") {
      shape_.notes.push_back(fmt::format("the phase centre is in the frame {} and taken as J2000", field.direction_frame));
    }
    const auto& windows = shape_.windows;
    const bool one_frame =
        std::all_of(windows.begin(), windows.end(), [&](const auto& window) { return window.frame == windows.front().frame; });
    if (one_frame) observation.spectral_reference = windows.front().frame;
    else shape_.notes.push_back("the windows' frequencies are in different frames and taken as they are");
  }

  /// Tensors of the last block, where nobody holds these any more, are used again: new memory would have to be cleared.
  void shape_block(std::int64_t rows, std::int64_t nchan) {
    const auto shaped = [](Tensor& tensor, at::IntArrayRef sizes, torch::Dtype dtype) {
      const bool is_free = tensor.defined() && tensor.use_count() == 1 && tensor.storage().use_count() == 1;  // no views either
      if (is_free && tensor.sizes() == sizes) return;
      tensor = at::empty(sizes, dtype);
    };
    shaped(block_.u, {rows}, torch::kFloat64);
    shaped(block_.v, {rows}, torch::kFloat64);
    shaped(block_.data, {rows, nchan}, torch::kComplexFloat);
    shaped(block_.weights, {rows, nchan}, torch::kFloat32);
    shaped(block_.observations, {rows}, torch::kInt32);
  }

  RowBlock combined(std::size_t index, const SetCells& cells) {
    const auto& window = shape_.windows[index];
    const auto& source = windows_[index];
    const auto count = cells.rows;
    shape_block(count, window.nchan());
    auto block = block_;
    block.window = static_cast<std::int64_t>(index);
    const BlockArrays arrays{block.u.mutable_data_ptr<double>(), block.v.mutable_data_ptr<double>(),
                             reinterpret_cast<Complex*>(block.data.mutable_data_ptr<c10::complex<float>>()),
                             block.weights.mutable_data_ptr<float>()};
    std::copy_n(cells.observations, count, block.observations.mutable_data_ptr<std::int32_t>());
    if (options_.tracks == RowTracks::read) add_tracks(block, cells);
    constexpr std::int64_t grain = 4096;  // samples worth a thread
    std::mutex mutex;
    const HandCombination combination(source.hands, options_.phases);
    ops::share_ranges(count, std::max<std::int64_t>(1, grain / window.nchan()), [&](std::int64_t begin, std::int64_t end) {
      DroppedSamples dropped;
      for (std::int64_t row = begin; row < end; ++row)
        combine_row(source, window.channels, cells, row, combination, arrays, dropped);
      const std::lock_guard lock(mutex);
      add(dropped_, dropped);
    });
    return block;
  }

  static void add_tracks(RowBlock& block, const SetCells& cells) {
    block.times = at::empty({cells.rows}, torch::kFloat64);
    block.tracks = at::empty({cells.rows, 5}, torch::kInt64);
    std::copy_n(cells.times, cells.rows, block.times.mutable_data_ptr<double>());
    auto* track = block.tracks.mutable_data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < cells.rows; ++row) {
      *track++ = cells.antenna1[row];
      *track++ = cells.antenna2[row];
      *track++ = cells.fields == nullptr ? 0 : cells.fields[row];
      *track++ = cells.scans == nullptr ? 0 : cells.scans[row];
      *track++ = cells.observations[row];
    }
  }

  /// A block's tensors as they lie in memory.
  struct BlockArrays {
    double *u, *v;
    Complex* data;
    float* weights;
  };

  static void combine_row(const Source& source, const std::vector<std::int64_t>& channels, const SetCells& cells,
                          std::int64_t row, const HandCombination& combination, const BlockArrays& block,
                          DroppedSamples& dropped) {
    const auto nchan = static_cast<std::int64_t>(channels.size());
    auto* values = block.data + row * nchan;
    auto* weights = block.weights + row * nchan;
    const double u = cells.uvw[3 * row], v = cells.uvw[3 * row + 1];
    block.u[row] = u;
    block.v[row] = v;
    std::int64_t* reason = nullptr;
    if (cells.flag_row[row]) reason = &dropped.flagged_rows;
    else if (cells.antenna1[row] == cells.antenna2[row]) reason = &dropped.autocorrelations;
    else if (!std::isfinite(u) || !std::isfinite(v)) reason = &dropped.not_finite;
    if (reason != nullptr) {
      *reason += nchan;
      std::fill_n(weights, nchan, 0.0F);
      std::fill_n(values, nchan, Complex());
      return;
    }
    const auto size = source.ncorr * source.nchan;
    const HandCells own{cells.data + row * size, cells.flags + row * size,
                        cells.weights + row * (cells.weights_by_channel ? size : source.ncorr), source.ncorr,
                        cells.weights_by_channel};
    combination.combine(own, channels, values, weights, dropped);
  }

  std::filesystem::path path_;
  MeasurementSetOptions options_;
  SetTable table_;
  ReaderShape shape_;
  DroppedSamples dropped_;
  std::vector<Source> windows_;
  RowBlock block_;          // the last one
  std::size_t window_ = 0;  // of the block after the one that is read ahead, and its first row
  std::int64_t begin_ = 0;
  std::future<ReadCells> ahead_;  // the last member: it ends before what it reads into
};

}  // namespace

bool reads_measurement_sets() { return has_casacore(); }

bool is_measurement_set(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path / "table.dat", ignored);
}

std::unique_ptr<VisibilityReader> open_measurement_set(const std::filesystem::path& path, const MeasurementSetOptions& options) {
  return std::make_unique<MeasurementSetReader>(path, options);
}

}  // namespace mpol::io
