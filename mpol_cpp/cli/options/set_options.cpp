#include <mpol_cpp/cli/options/set_options.h>

#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/io/uvfits/uvfits.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kilometre = 1e3;
constexpr std::array<NamedChoice<io::HandsNeeded>, 2> hands_choices = {
    {{"both", io::HandsNeeded::both}, {"one", io::HandsNeeded::one}}};

Choices<io::Polarization> polarization_choices() {
  static const auto choices = [] {
    std::vector<NamedChoice<io::Polarization>> all;
    for (const auto& name : io::polarization_names()) all.push_back({name.c_str(), io::polarization_from_name(name)});
    return all;
  }();
  return choices;
}
std::string polarization_word(const SetOptions& set) { return choice_name(set.polarization, polarization_choices()); }

/// "LOW:HIGH" as two numbers.
std::optional<std::pair<double, double>> parse_range(const std::string& option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto colon = text.find(':');
  if (colon == std::string::npos) {
    throw UsageError(error_text("--" + option, text, "must be LOW:HIGH, the ends of a range", "correct it"));
  }
  const auto low = parse_number(option, text.substr(0, colon), Range::any());
  const auto high = parse_number(option, text.substr(colon + 1), Range::any());
  if (!(low < high)) throw UsageError(error_text("--" + option, text, "must have its lower end first", "swap them"));
  return std::pair(low, high);
}

Json describe_windows(const io::ReaderShape& shape) {
  Json windows = Json::array();
  for (const auto& window : shape.windows) {
    windows.push_back({{"spectral_window", window.id},
                       {"rows", window.rows},
                       {"channels", window.channels},
                       {"frequency_hz", {window.frequencies.min().item<double>(), window.frequencies.max().item<double>()}},
                       {"frame", window.frame}});
  }
  return windows;
}

Json describe_dropped(const io::DroppedSamples& dropped) {
  return {{"flagged_rows", dropped.flagged_rows}, {"autocorrelations", dropped.autocorrelations},
          {"flagged", dropped.flagged},           {"without_weight", dropped.without_weight},
          {"not_finite", dropped.not_finite},     {"incomplete_rows", dropped.incomplete_rows}};
}

std::string window_words(const io::ReaderWindow& window) {
  const auto low = window.frequencies.min().item<double>() / 1e9, high = window.frequencies.max().item<double>() / 1e9;
  const auto range = low == high ? fmt::format("{:.6g} GHz", low) : fmt::format("{:.6g} to {:.6g} GHz", low, high);
  return fmt::format("spw {}: {} rows of {} channel{}, {} {}", window.id, window.rows, window.nchan(),
                     window.nchan() == 1 ? "" : "s", range, window.frame.empty() ? "(frame unknown)" : window.frame);
}

std::string dropped_words(const io::DroppedSamples& dropped) {
  std::string text =
      fmt::format("{} in flagged rows, {} autocorrelations, {} flagged, {} without weight, {} not finite", dropped.flagged_rows,
                  dropped.autocorrelations, dropped.flagged, dropped.without_weight, dropped.not_finite);
  if (dropped.incomplete_rows > 0) text += fmt::format(", {} in rows that lack another channel", dropped.incomplete_rows);
  return text;
}

/// @param samples  of the file
void report(const std::filesystem::path& path, const SetOptions& set, const io::ReaderShape& shape, std::int64_t samples,
            const io::CollectedVisibilities& read) {
  const auto kept = read.visibilities.nchan() * read.visibilities.nvis();
  const auto& observation = read.visibilities.observation();
  tell(fmt::format("read        {} of {}, Stokes or hand {}: {}{} of {} samples", shape.column, path.filename().string(),
                   polarization_word(set), kept, set.averages() ? " averages" : "", samples));
  tell(fmt::format("left out    {}", dropped_words(read.dropped)));
  for (const auto& window : shape.windows) tell("            " + window_words(window));
  log_info(fmt::format("{} by {}, {}; {}", observation.object, observation.telescope, observation.date,
                       phase_center_text(observation)));
  for (const auto& note : shape.notes) log_warning(note);
  auto averaging = Json();
  if (set.averages()) averaging = Json::parse(report_averaging(set, *set.cost));
  note_reading(Json{{"file", path.string()},
                    {"column", shape.column},
                    {"stokes", polarization_word(set)},
                    {"samples", samples},
                    {"kept", kept},
                    {"dropped", describe_dropped(read.dropped)},
                    {"averaging", averaging},
                    {"windows", describe_windows(shape)},
                    {"object", observation.object},
                    {"telescope", observation.telescope},
                    {"date", observation.date},
                    {"right_ascension", observation.right_ascension.value_or(0)},
                    {"declination", observation.declination.value_or(0)}}
                   .dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::unique_ptr<io::VisibilityReader> open_rows(const std::filesystem::path& path, const io::MeasurementSetOptions& options) {
  if (!io::is_uvfits(path)) return io::open_measurement_set(path, options);
  const auto refuse = [&](const char* option, const std::string& value) {
    if (!value.empty())
      throw UsageError(error_text(option, value, "is for measurement sets, and " + path.string() + " is UVFITS", "leave it out"));
  };
  refuse("--select", options.select);
  refuse("--column", options.column);
  return io::open_uvfits(path, {options.polarization, options.windows, options.channels, options.phases, options.tracks});
}

}  // namespace

bool is_set_or_uvfits(const std::filesystem::path& path) { return io::is_measurement_set(path) || io::is_uvfits(path); }

std::string report_averaging(const SetOptions& set, const io::AveragingCost& cost) {
  constexpr double part = 0.01;
  *set.cost = cost;
  const double offset = cost.offset_of(part);
  const bool known = cost.channels == 1 || cost.relative_width > 0;
  const auto words = cost.seconds > 0 && cost.channels > 1 ? fmt::format("{} s, {} channels", cost.seconds, cost.channels)
                     : cost.seconds > 0                    ? fmt::format("{} s", cost.seconds)
                                                           : fmt::format("{} channels", cost.channels);
  tell(fmt::format(
      "averaged    {}: {}", words,
      !known ? "what that costs a source off the phase centre is unknown without frequencies"
      : std::isfinite(offset)
          ? fmt::format("{:.3g}\" from the phase centre a source loses {:.0f} % of its amplitude on the longest baseline", offset,
                        100 * part)
          : "it costs no source anything"));
  return Json{{"seconds", cost.seconds},
              {"channels", cost.channels},
              {"one_percent_arcsec", known && std::isfinite(offset) ? Json(offset) : Json()}}
      .dump();
}

void declare(OptionSet& options, SetOptions& set, const std::function<bool()>& applies, const std::string& column_option) {
  const auto result = Record::result;
  options.text("--select", set.select, "TAQL", "Measurement set: rows to use, as in \"FIELD_ID == 1\"; default: all", result);
  options.text(column_option, set.column, "NAME",
               "Measurement set: column of the data; default: CORRECTED_DATA where it is filled, else DATA", result);
  options.choice("--stokes", set.polarization, polarization_choices(), "Set, UVFITS: Stokes parameter, or one hand alone",
                 result);
  options.choice("--hands", set.hands, hands_choices,
                 "Set, UVFITS: what Stokes I needs; one: where the other hand is flagged, one stands for I (unpolarised sources)",
                 result);
  options.text("--spw", set.spw, "LIST", "Set, UVFITS: numbers of spectral windows, as in 0,2-3; default: all", result);
  options.text("--frequency-range", set.frequency_range, "HZ:HZ", "Set, UVFITS: channels between these, in the data's frame",
               result);
  options.text("--velocity-range", set.velocity_range, "KM_S:KM_S",
               "Set, UVFITS: channels between these, radio convention, in the data's frame", result);
  options.number("--rest-frequency", set.rest_frequency, Range::positive(), "HZ",
                 "Set, UVFITS: rest frequency of the line; default: as the data say", result);
  options.only(
      {"--select", column_option, "--stokes", "--hands", "--spw", "--frequency-range", "--velocity-range", "--rest-frequency"},
      "with a measurement set or UVFITS", applies);
  options.number("--average-time", set.average_time, Range::positive(), "SECONDS",
                 "Set, UVFITS: average each baseline over up to so long, within a scan; default: not at all", result);
  options.integer("--average-channels", set.average_channels, Range::between(1, 1e9), "Average so many neighbouring channels",
                  result);
  options.only({"--average-time"}, "with a measurement set or UVFITS: arrays have no times", applies);
  options.only({"--hands"}, "with --stokes I", [&set] { return set.polarization == io::Polarization::stokes_i; });
}

void declare_mode(OptionSet& options, SetOptions& set, const std::function<bool()>& applies) {
  options.choice("--mode", set.mode, image_mode_choices,
                 "Set, UVFITS: all samples as one channel, or one for each of theirs; default: continuum", Record::result);
  options.only({"--mode"}, "with a measurement set or UVFITS", applies);
}

void check(const SetOptions& set) {
  parse_number_list("--spw", set.spw);
  parse_range("frequency-range", set.frequency_range);
  parse_range("velocity-range", set.velocity_range);
}

io::MeasurementSetOptions library_options(const SetOptions& set, const std::string& channels, io::SetPhases phases) {
  io::MeasurementSetOptions options;
  options.select = set.select;
  options.column = set.column;
  options.polarization = {set.polarization, set.hands};
  options.windows = parse_number_list("--spw", set.spw);
  options.channels.numbers = parse_number_list("--channels", channels);
  options.channels.frequency_range = parse_range("frequency-range", set.frequency_range);
  options.channels.velocity_range = parse_range("velocity-range", set.velocity_range);
  if (auto& range = options.channels.velocity_range) *range = {kilometre * range->first, kilometre * range->second};
  options.channels.rest_frequency = set.rest_frequency;
  options.phases = phases;
  options.tracks = set.average_time ? io::RowTracks::read : io::RowTracks::leave;
  return options;
}

io::CollectedVisibilities read_set(const std::filesystem::path& path, const SetOptions& set,
                                   const io::MeasurementSetOptions& options, io::SampleOrigins origins,
                                   const SampleMemory& memory) {
  auto reader = open_rows(path, options);
  const auto samples = reader->shape().samples();
  io::AveragingReader* averaging = nullptr;
  if (set.averages()) {
    const auto how = io::AveragingOptions().seconds(set.average_time.value_or(0)).channels(set.average_channels);
    auto averaged = std::make_unique<io::AveragingReader>(std::move(reader), how);
    averaging = averaged.get();
    reader = std::move(averaged);
  }
  const bool cube = set.mode == ImageMode::cube;
  const auto& shape = reader->shape();
  const auto room = room_for_samples(cube ? io::bytes_of_cube(shape) : io::bytes_of_samples(shape),
                                     cube ? shape.windows.front().nchan() : 1, memory);
  auto read = cube ? io::collect_cube(*reader, origins, room) : io::collect_samples(*reader, origins, room);
  if (averaging != nullptr) *set.cost = averaging->cost();
  report(path, set, reader->shape(), samples, read);
  return read;
}

}  // namespace mpol::cli
