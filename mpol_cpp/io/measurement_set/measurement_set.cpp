#include <mpol_cpp/io/measurement_set/measurement_set.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
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

bool same_centre(const SetField& a, const SetField& b) {
  constexpr double tolerance = 1e-9;  // radian
  Observation of_a, of_b;
  of_a.right_ascension = a.right_ascension, of_a.declination = a.declination;
  of_b.right_ascension = b.right_ascension, of_b.declination = b.declination;
  return phase_centre_distance(of_a, of_b).value_or(0) <= tolerance;
}

/// @throws DataError where rows are of fields with different phase centres
void check_one_field(const std::filesystem::path& path, const std::vector<SetField>& fields) {
  const auto& first = fields.front();
  if (std::all_of(fields.begin(), fields.end(), [&](const SetField& field) { return same_centre(first, field); })) return;
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
    while (window_ < windows_.size() && begin_ >= shape_.windows[window_].rows) ++window_, begin_ = 0;
    if (window_ == windows_.size()) return std::nullopt;
    const auto& source = windows_[window_];
    const auto& part = table_.parts()[source.part];
    const auto most = std::max<std::int64_t>(1, block_values / (part.ncorr() * part.nchan()));
    const auto count = std::min(most, part.rows - begin_);
    const auto& cells = table_.read(source.part, begin_, count);
    begin_ += count;
    return combined(source, cells);
  }

 private:
  /// Where the rows of a window of the shape come from.
  struct Source {
    std::size_t part;           ///< of the table
    std::int64_t ncorr, nchan;  ///< of its cells
    HandPair hands;
  };

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

  RowBlock combined(const Source& source, const SetCells& cells) {
    const auto& window = shape_.windows[window_];
    const auto count = cells.rows;
    RowBlock block;
    block.window = static_cast<std::int64_t>(window_);
    block.u = at::empty({count}, torch::kFloat64);
    block.v = at::empty({count}, torch::kFloat64);
    block.data = at::empty({count, window.nchan()}, torch::kComplexFloat);
    block.weights = at::empty({count, window.nchan()}, torch::kFloat32);
    block.observations = at::empty({count}, torch::kInt32);
    std::copy_n(cells.observations, count, block.observations.mutable_data_ptr<std::int32_t>());
    if (options_.tracks == RowTracks::read) add_tracks(block, cells);
    constexpr std::int64_t grain = 4096;  // samples worth a thread
    std::mutex mutex;
    const HandCombination combination(source.hands, options_.phases);
    ops::share_ranges(count, std::max<std::int64_t>(1, grain / window.nchan()), [&](std::int64_t begin, std::int64_t end) {
      DroppedSamples dropped;
      for (std::int64_t row = begin; row < end; ++row) combine_row(source, cells, row, combination, block, dropped);
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

  void combine_row(const Source& source, const SetCells& cells, std::int64_t row, const HandCombination& combination,
                   RowBlock& block, DroppedSamples& dropped) const {
    const auto& window = shape_.windows[window_];
    const auto nchan = window.nchan();
    auto* values = reinterpret_cast<Complex*>(block.data.mutable_data_ptr<c10::complex<float>>()) + row * nchan;
    auto* weights = block.weights.mutable_data_ptr<float>() + row * nchan;
    const double u = cells.uvw[3 * row], v = cells.uvw[3 * row + 1];
    block.u.mutable_data_ptr<double>()[row] = u;
    block.v.mutable_data_ptr<double>()[row] = v;
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
    const auto a = source.hands.a, b = source.hands.b.value_or(a);
    const auto* of_row = cells.weights + row * source.ncorr * (cells.weights_by_channel ? source.nchan : 1);
    for (std::int64_t c = 0; c < nchan; ++c) {
      const auto channel = window.channels[static_cast<std::size_t>(c)];
      const auto at = (row * source.nchan + channel) * source.ncorr;
      const auto* sample_weights = cells.weights_by_channel ? of_row + channel * source.ncorr : of_row;
      const auto hand = [&](std::int64_t k) { return Hand{cells.data[at + k], sample_weights[k], cells.flags[at + k]}; };
      values[c] = {};
      weights[c] = combination.combine(hand(a), hand(b), values[c], dropped);
    }
  }

  std::filesystem::path path_;
  MeasurementSetOptions options_;
  SetTable table_;
  ReaderShape shape_;
  DroppedSamples dropped_;
  std::vector<Source> windows_;
  std::size_t window_ = 0;
  std::int64_t begin_ = 0;
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
