#include <mpol_cpp/io/uvfits/uvfits.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/cfitsio/fits_handle.h>
#include <mpol_cpp/io/measurement_set/hand_combination.h>
#include <mpol_cpp/io/uvfits/group_layout.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::io {
namespace {

constexpr std::int64_t block_numbers = std::int64_t{1} << 20;  // that are read at once: 4 MiB

/// casacore's Stokes::StokesTypes, which hands_for takes, of the numbers of a STOKES axis: I, Q, U, V; -1 RR, LL, RL, LR; -5 XX,
/// YY, XY, YX.
std::int32_t correlation_of(double stokes) {
  static constexpr std::array of_negative = {5, 8, 6, 7, 9, 12, 10, 11};
  const auto number = std::abs(stokes) < 100 ? std::lround(stokes) : 0;
  if (number >= 1 && number <= 4) return static_cast<std::int32_t>(number);
  if (number <= -1 && number >= -8) return of_negative[static_cast<std::size_t>(-number - 1)];
  return 0;
}

/// Parameters of groups, by what they mean.
class GroupParameters {
 public:
  GroupParameters(const GroupLayout& layout, const std::filesystem::path& path) : layout_(&layout) {
    u_ = need("UU", path);
    v_ = need("VV", path);
    in_wavelengths_ = layout.parameters[u_.front()].name.starts_with("UU-L");
    baseline_ = layout.named("BASELINE");
    antennas_ = {layout.named("ANTENNA1"), layout.named("ANTENNA2")};
    source_ = layout.named("SOURCE");
    setup_ = layout.named("FREQSEL");
    date_ = layout.named("DATE");
    if (baseline_.empty() && (antennas_[0].empty() || antennas_[1].empty())) need("BASELINE", path);
  }

  std::int64_t count() const { return static_cast<std::int64_t>(layout_->parameters.size()); }
  bool in_wavelengths() const { return in_wavelengths_; }

  // Coordinates from a group's parameters as they are in the file.
  double u(const double* group) const { return sum(u_, group); }
  double v(const double* group) const { return sum(v_, group); }
  std::int64_t setup(const double* group) const { return whole(setup_, group); }
  std::int64_t source(const double* group) const { return whole(source_, group); }
  bool has_times() const { return !date_.empty(); }
  double seconds(const double* group) const { return sum(date_, group) * 86400; }
  /// Two numbers of a group's antennas, the same for the same pair in the same subarray.
  std::pair<std::int64_t, std::int64_t> pair(const double* group) const {
    if (baseline_.empty()) return {whole(antennas_[0], group), whole(antennas_[1], group)};
    const double number = sum(baseline_, group);
    return {std::abs(number) < 1e9 ? std::llround(100 * number) : -1, 0};  // the fraction says the subarray
  }
  bool is_autocorrelation(const double* group) const {
    constexpr std::int64_t most_in_short_form = 65536;  // 256 a + b; beyond, 2048 a + b more than that
    if (baseline_.empty()) return whole(antennas_[0], group) == whole(antennas_[1], group);
    const double number = sum(baseline_, group);
    if (!(std::abs(number) < 1e9)) return false;
    const auto baseline = static_cast<std::int64_t>(number + 1e-3);  // the fraction says the subarray
    if (baseline <= most_in_short_form) return baseline / 256 == baseline % 256;
    return (baseline - most_in_short_form) / 2048 == (baseline - most_in_short_form) % 2048;
  }

 private:
  using Places = std::vector<std::size_t>;

  Places need(const std::string& name, const std::filesystem::path& path) const {
    auto places = layout_->named(name);
    if (!places.empty()) return places;
    std::string there;
    for (const auto& parameter : layout_->parameters) there += (there.empty() ? "" : ", ") + parameter.name;
    throw DataError(fmt::format("{}: its groups have the parameters {}, but no {}; write the file again with it", path.string(),
                                there, name));
  }

  double sum(const Places& places, const double* group) const {
    double total = 0;
    for (const auto place : places) {
      const auto& parameter = layout_->parameters[place];
      total += group[place] * parameter.scale + parameter.zero;
    }
    return total;
  }

  /// 0 where there is none.
  std::int64_t whole(const Places& places, const double* group) const {
    const double value = places.empty() ? 0 : sum(places, group);
    return std::abs(value) < 1e9 ? std::llround(value) : -1;
  }

  const GroupLayout* layout_;
  Places u_, v_, baseline_, source_, setup_, date_;
  std::array<Places, 2> antennas_;
  bool in_wavelengths_ = false;
};

/// What the parameters of all groups say.
struct GroupSurvey {
  std::map<std::int64_t, std::int64_t> rows_of_setup, rows_of_source;
  double longest = 0;  ///< largest |u|, |v| as they are given
};

class UvfitsReader final : public VisibilityReader {
 public:
  UvfitsReader(const std::filesystem::path& path, const UvfitsOptions& options)
      : path_(path),
        options_(options),
        file_(FitsHandle::open(path)),
        layout_(read_group_layout(file_, path)),
        parameters_(layout_, path) {
    complex_ = &need_axis("COMPLEX");
    if (complex_->size != 3) {
      throw DataError(
          fmt::format("{}: its COMPLEX axis has {} numbers; real part, imaginary part and weight are needed: write the "
                      "file without compression",
                      path.string(), complex_->size));
    }
    frequency_ = &need_axis("FREQ");
    survey_ = survey();
    check_baselines();
    choose_hands();
    add_windows();
    describe();
  }

  const ReaderShape& shape() const override { return shape_; }
  const DroppedSamples& dropped() const override { return dropped_; }

  std::optional<RowBlock> next() override {
    while (true) {
      while (window_ < windows_.size()) {
        if (const auto rows = rows_of(windows_[window_]); !rows.empty()) return combined(window_++, rows);
        ++window_;
      }
      if (begin_ == layout_.groups) return std::nullopt;
      read_groups();
      window_ = 0;
    }
  }

 private:
  /// Where a window's samples are in a group.
  struct Source {
    std::optional<std::int64_t> setup;  ///< FREQSEL, where there are several
    std::int64_t first;                 ///< value of its first channel
  };

  const GroupAxis& need_axis(std::string_view name) const {
    const auto* axis = layout_.axis(name);
    if (axis != nullptr) return *axis;
    throw DataError(fmt::format("{}: its groups have no axis {}; write the file again with it", path_.string(), name));
  }

  std::int64_t ifs() const {
    const auto* axis = layout_.axis("IF");
    return axis == nullptr ? 1 : axis->size;
  }

  /// One look at all parameters.
  GroupSurvey survey() {
    GroupSurvey found;
    const auto count = parameters_.count(), most = std::max<std::int64_t>(1, block_numbers / count);
    std::vector<double> read;
    for (std::int64_t begin = 0; begin < layout_.groups; begin += most) {
      const auto groups = std::min(most, layout_.groups - begin);
      read.resize(static_cast<std::size_t>(groups * count));
      fits_read_grppar_dbl(file_.get(), static_cast<long>(begin + 1), 1, static_cast<long>(groups * count), read.data(),
                           file_.status());
      file_.check("reading the parameters of its groups");
      for (std::int64_t i = 0; i < groups; ++i) {
        const auto* group = read.data() + i * count;
        ++found.rows_of_setup[parameters_.setup(group)];
        ++found.rows_of_source[parameters_.source(group)];
        for (const double length : {parameters_.u(group), parameters_.v(group)}) {
          if (std::isfinite(length)) found.longest = std::max(found.longest, std::abs(length));
        }
        check_few(found);
      }
    }
    return found;
  }

  void check_few(const GroupSurvey& found) const {
    constexpr std::size_t most = 10'000;
    if (found.rows_of_setup.size() <= most && found.rows_of_source.size() <= most) return;
    throw DataError(
        fmt::format("{}: more than {} sources or frequency setups; the file is damaged: write it again", path_.string(), most));
  }

  /// Lengths in another unit than seconds, and files of several sources.
  void check_baselines() const {
    constexpr double longest = 3;  // light seconds: beyond the Moon
    if (!parameters_.in_wavelengths() && survey_.longest > longest) {
      throw DataError(
          fmt::format("{}: u and v reach {:.4g}, but are in seconds of light, of which an array has less than {}; are "
                      "they wavelengths? correct PSCAL of UU and VV",
                      path_.string(), survey_.longest, longest));
    }
    if (survey_.rows_of_source.size() == 1) return;
    std::vector<std::string> list;
    for (const auto& [id, rows] : survey_.rows_of_source) list.push_back(fmt::format("{} {} ({} groups)", id, name_of(id), rows));
    throw DataError(fmt::format("{}: has several sources: {}; one can be imaged at a time: split the file by source",
                                path_.string(), fmt::join(list, ", ")));
  }

  const GroupSource* source(std::int64_t id) const {
    const auto found =
        std::find_if(layout_.sources.begin(), layout_.sources.end(), [id](const GroupSource& each) { return each.id == id; });
    return found == layout_.sources.end() ? nullptr : &*found;
  }
  std::string name_of(std::int64_t id) const { return source(id) == nullptr ? std::string("?") : source(id)->name; }

  void choose_hands() {
    const auto* axis = layout_.axis("STOKES");
    std::vector<std::int32_t> correlations;
    for (std::int64_t i = 0; i < (axis == nullptr ? 1 : std::min<std::int64_t>(axis->size, 64)); ++i)
      correlations.push_back(axis == nullptr ? 1 : correlation_of(axis->at(i)));
    const auto hands = hands_for(correlations, options_.polarization);
    if (!hands) {
      throw DataError(
          fmt::format("{}: has the correlations {}, of which the wanted polarisation cannot be made; choose another one "
                      "(--stokes), or --hands one",
                      path_.string(), correlation_names(correlations)));
    }
    hands_ = *hands;
    hand_stride_ = axis == nullptr ? 0 : axis->stride;
  }

  void add_windows() {
    const auto& wanted = options_.windows;
    for (const auto window : wanted) {
      if (window < 0 || window >= ifs())
        throw ValueError(fmt::format("{}: window {} is not there; its IFs are 0 to {}", path_.string(), window, ifs() - 1));
    }
    std::int64_t id = 0;
    for (const auto& [setup, rows] : survey_.rows_of_setup) {
      for (std::int64_t i = 0; i < ifs(); ++i, ++id) {
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), i) != wanted.end()) add_window(id, setup, i, rows);
      }
    }
    if (windows_.empty())
      throw DataError(
          fmt::format("{}: no channel of the selected windows lies in the range asked for; widen it", path_.string()));
  }

  void add_window(std::int64_t id, std::int64_t setup, std::int64_t i, std::int64_t rows) {
    const auto [offset, step] = spacing(setup, i);
    std::vector<double> all;
    for (std::int64_t c = 0; c < frequency_->size; ++c)
      all.push_back(frequency_->value + offset + (static_cast<double>(c) + 1 - frequency_->pixel) * step);
    if (const auto lowest = *std::min_element(all.begin(), all.end()); !(lowest > 0)) {
      throw DataError(
          fmt::format("{}: a channel of IF {} has the frequency {:.4g} Hz; it must be above 0: correct CRVAL and CDELT of "
                      "FREQ, or the table AIPS FQ",
                      path_.string(), i, lowest));
    }
    ReaderWindow window;
    window.channels = chosen_channels(all, options_.channels, id, layout_.observation.rest_frequency);
    if (window.channels.empty()) return;
    std::vector<double> frequencies;
    for (const auto channel : window.channels) frequencies.push_back(all[static_cast<std::size_t>(channel)]);
    const double per_hertz = parameters_.in_wavelengths() ? 1 / frequency_->value : 1;
    for (const double frequency : frequencies) window.wavelengths_per_unit.push_back(frequency * per_hertz);
    window.id = id;
    window.rows = rows;
    window.frequencies = at::tensor(frequencies, torch::kFloat64);
    window.channel_width = std::abs(step);
    window.frame = layout_.observation.spectral_reference;
    shape_.windows.push_back(std::move(window));
    const auto* axis = layout_.axis("IF");
    windows_.push_back(
        {survey_.rows_of_setup.size() == 1 ? std::nullopt : std::optional(setup), axis == nullptr ? 0 : i * axis->stride});
  }

  /// How far an IF's reference channel is from the axis's, and its step from channel to channel, Hz.
  std::pair<double, double> spacing(std::int64_t id, std::int64_t i) const {
    const auto& setups = layout_.setups;
    if (setups.empty()) {
      if (ifs() == 1) return {0, frequency_->step};
      throw DataError(fmt::format("{}: has {} IFs, but no table AIPS FQ with their frequencies; write the file again with it",
                                  path_.string(), ifs()));
    }
    const auto found = std::find_if(setups.begin(), setups.end(), [id](const FrequencySetup& setup) { return setup.id == id; });
    if (found == setups.end() && id > 0 && setups.size() > 1) {
      throw DataError(
          fmt::format("{}: groups have FREQSEL {}, which the table AIPS FQ lacks; write the file again", path_.string(), id));
    }
    const auto& setup = found == setups.end() ? setups.front() : *found;
    const auto at = static_cast<std::size_t>(i);
    return {setup.offsets[at], setup.widths[at] == 0 ? frequency_->step : setup.widths[at]};
  }

  void describe() {
    shape_.observation = layout_.observation;
    shape_.observation.stokes = stokes_of(options_.polarization.polarization);
    if (const auto* own = source(survey_.rows_of_source.begin()->first); own != nullptr) {
      shape_.observation.right_ascension = own->right_ascension;
      shape_.observation.declination = own->declination;
      if (!own->name.empty()) shape_.observation.object = own->name;
    }
    if (options_.channels.rest_frequency) shape_.observation.rest_frequency = options_.channels.rest_frequency;
    if (layout_.equinox != 2000)
      shape_.notes.push_back(fmt::format("the phase centre is of equinox {} and taken as J2000", layout_.equinox));
    auto unit = layout_.unit;
    std::transform(unit.begin(), unit.end(), unit.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
    if (!unit.empty() && unit != "JY") shape_.notes.push_back(fmt::format("the data are in {} and taken as Jy", layout_.unit));
    shape_.column = "UVFITS";
  }

  void read_groups() {
    const auto of_group = layout_.values(), count = parameters_.count();
    const auto groups = std::min(std::max<std::int64_t>(1, block_numbers / (of_group + count)), layout_.groups - begin_);
    values_.resize(static_cast<std::size_t>(groups * of_group));
    of_groups_.resize(static_cast<std::size_t>(groups * count));
    const auto first = static_cast<long>(begin_ + 1);
    fits_read_grppar_dbl(file_.get(), first, 1, static_cast<long>(groups * count), of_groups_.data(), file_.status());
    int any_blank = 0;  // not told, cfitsio needs it
    // Integers that say BLANK become NaN, which are left out.
    const LONGLONG count_of_values = groups * of_group;
    fits_read_img_flt(file_.get(), first, 1, count_of_values, std::numeric_limits<float>::quiet_NaN(), values_.data(), &any_blank,
                      file_.status());
    file_.check("reading its groups");
    read_ = groups;
    begin_ += groups;
  }

  /// Which of the groups that were read are a window's.
  std::vector<std::int64_t> rows_of(const Source& source) const {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < read_; ++row) {
      if (!source.setup || parameters_.setup(of_groups_.data() + row * parameters_.count()) == *source.setup) rows.push_back(row);
    }
    return rows;
  }

  RowBlock combined(std::size_t index, const std::vector<std::int64_t>& rows) {
    const auto& window = shape_.windows[index];
    const auto count = static_cast<std::int64_t>(rows.size());
    RowBlock block;
    block.window = static_cast<std::int64_t>(index);
    block.u = at::empty({count}, torch::kFloat64);
    block.v = at::empty({count}, torch::kFloat64);
    block.data = at::empty({count, window.nchan()}, torch::kComplexFloat);
    block.weights = at::empty({count, window.nchan()}, torch::kFloat32);
    if (options_.tracks == RowTracks::read && parameters_.has_times()) add_tracks(block, rows);
    constexpr std::int64_t grain = 4096;  // samples worth a thread
    std::mutex mutex;
    const HandCombination combination(hands_, options_.phases);
    ops::share_ranges(count, std::max<std::int64_t>(1, grain / window.nchan()), [&](std::int64_t begin, std::int64_t end) {
      DroppedSamples dropped;
      for (std::int64_t i = begin; i < end; ++i)
        combine_row(index, rows[static_cast<std::size_t>(i)], i, combination, block, dropped);
      const std::lock_guard lock(mutex);
      add(dropped_, dropped);
    });
    return block;
  }

  void add_tracks(RowBlock& block, const std::vector<std::int64_t>& rows) const {
    const auto count = static_cast<std::int64_t>(rows.size());
    block.times = at::empty({count}, torch::kFloat64);
    block.tracks = at::empty({count, 5}, torch::kInt64).zero_();
    auto* track = block.tracks.mutable_data_ptr<std::int64_t>();
    auto* time = block.times.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < count; ++i, track += 5) {
      const auto* group = of_groups_.data() + rows[static_cast<std::size_t>(i)] * parameters_.count();
      time[i] = parameters_.seconds(group);
      std::tie(track[0], track[1]) = parameters_.pair(group);
      track[2] = parameters_.source(group);
    }
  }

  /// @param group  among those that were read  @param row  of the block
  void combine_row(std::size_t index, std::int64_t group, std::int64_t row, const HandCombination& combination, RowBlock& block,
                   DroppedSamples& dropped) const {
    const auto& window = shape_.windows[index];
    const auto nchan = window.nchan();
    auto* values = reinterpret_cast<std::complex<float>*>(block.data.mutable_data_ptr<c10::complex<float>>()) + row * nchan;
    auto* weights = block.weights.mutable_data_ptr<float>() + row * nchan;
    const auto* own = of_groups_.data() + group * parameters_.count();
    const double u = parameters_.u(own), v = parameters_.v(own);
    block.u.mutable_data_ptr<double>()[row] = u;
    block.v.mutable_data_ptr<double>()[row] = v;
    std::int64_t* reason = nullptr;
    if (parameters_.is_autocorrelation(own)) reason = &dropped.autocorrelations;
    else if (!std::isfinite(u) || !std::isfinite(v)) reason = &dropped.not_finite;
    if (reason != nullptr) {
      *reason += nchan;
      std::fill_n(weights, nchan, 0.0F);
      std::fill_n(values, nchan, std::complex<float>());
      return;
    }
    const auto* samples = values_.data() + group * layout_.values() + windows_[index].first;
    const auto a = hands_.a * hand_stride_, b = hands_.b.value_or(hands_.a) * hand_stride_;
    for (std::int64_t c = 0; c < nchan; ++c) {
      const auto* sample = samples + window.channels[static_cast<std::size_t>(c)] * frequency_->stride;
      values[c] = {};
      weights[c] = combination.combine(hand(sample + a), hand(sample + b), values[c], dropped);
    }
  }

  /// A negative weight flags a sample.
  Hand hand(const float* numbers) const {
    const float weight = numbers[2 * complex_->stride];
    return {{numbers[0], numbers[complex_->stride]}, weight, weight < 0};
  }

  std::filesystem::path path_;
  UvfitsOptions options_;
  FitsHandle file_;
  GroupLayout layout_;
  GroupParameters parameters_;
  GroupSurvey survey_;
  ReaderShape shape_;
  DroppedSamples dropped_;
  HandPair hands_;
  std::int64_t hand_stride_ = 0;
  const GroupAxis *complex_ = nullptr, *frequency_ = nullptr;
  std::vector<Source> windows_;
  std::vector<double> of_groups_;  // parameters of the groups that were read
  std::vector<float> values_;      // their data
  std::int64_t begin_ = 0, read_ = 0;
  std::size_t window_ = 0;
};

}  // namespace

bool is_uvfits(const std::filesystem::path& path) {
  constexpr std::size_t card = 80, most_cards = 3600;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, card> bytes{};
  for (std::size_t i = 0; i < most_cards && file.read(bytes.data(), card); ++i) {
    const std::string_view text(bytes.data(), card);
    if (i == 0 && !text.starts_with("SIMPLE  =")) return false;
    if (text.starts_with("END     ")) return false;
    if (text.starts_with("GROUPS  =")) return text.substr(10, text.find('/', 10) - 10).find('T') != std::string_view::npos;
  }
  return false;
}

std::unique_ptr<VisibilityReader> open_uvfits(const std::filesystem::path& path, const UvfitsOptions& options) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !is_uvfits(path)) {
    throw FileError(
        fmt::format("{}: is no UVFITS file: it has no FITS header with GROUPS = T; unpack a packed one first", path.string()));
  }
  return std::make_unique<UvfitsReader>(path, options);
}

}  // namespace mpol::io
