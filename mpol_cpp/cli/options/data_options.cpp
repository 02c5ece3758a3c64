#include <mpol_cpp/cli/options/data_options.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/file_list.h>
#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/io/visibility_arrays.h>
#include <mpol_cpp/visibilities/average_channels.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/join_samples.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::cli {
namespace {

io::ReadOptions read_options(const DataOptions& options) {
  io::ReadOptions read;
  read.uv_unit = options.uv_unit;
  read.frequencies = parse_frequencies(options.frequency);
  read.channels = parse_channels(options.channels);
  read.conjugate = options.conjugate;
  return read;
}

void declare_grid(OptionSet& options, DataOptions& data) {
  options.number_or_auto("--cell-size", data.cell_size, Range::positive(), "ARCSEC",
                         "Width of a pixel; default: auto, a fifth of the finest fringe", Record::result);
  options.integer_or_auto("--npix", data.npix, Range::between(2, 1e9),
                          "Pixels along each axis, even; default: auto, for the field in which there is flux", Record::result);
}

/// The unit of a file's u and v; those of a measurement set come as wavelengths.
io::UvUnit unit_of(const std::filesystem::path& file, const io::ReadOptions& read) {
  return is_set_or_uvfits(file) ? io::UvUnit::lambda : io::uv_unit_of(file, read);
}

/// What averaging channels costs.
io::AveragingCost cost_of_channels(const Visibilities& visibilities, std::int64_t channels) {
  io::AveragingCost cost;
  cost.channels = std::min(channels, visibilities.nchan());
  cost.longest = summarize_uv(visibilities.baselines()).longest;
  const auto& frequencies = visibilities.frequencies();
  if (frequencies.defined() && visibilities.nchan() > 1)
    cost.relative_width = (frequencies.diff().abs().max() / frequencies.min()).item<double>();
  return cost;
}

Visibilities averaged(Visibilities visibilities, const SetOptions& set) {
  if (set.average_channels == 1) return visibilities;
  report_averaging(set, cost_of_channels(visibilities, set.average_channels));
  const auto room = room_beside(visibilities, static_cast<double>(visibilities.data().nbytes()));
  return average_channels(visibilities, set.average_channels, room);
}

/// @param origins  of the samples, where they are wanted
/// @param ranges   of its windows, as far as the file is in their order
Visibilities read_one(const std::filesystem::path& file, const DataOptions& options, const io::ReadOptions& read,
                      DataOrigins* origins, std::vector<io::WindowRange>& ranges) {
  const bool with_times = origins != nullptr && options.origins->with_times;
  if (!is_set_or_uvfits(file)) {
    const io::VisibilityArrays arrays(file, read);
    if (origins != nullptr) *origins = origins_of(arrays.reader(), arrays.nvis(), with_times);
    if (options.parts) ranges = window_ranges(arrays.reader(), arrays.nvis());
    const auto room = room_for_samples(arrays.bytes(), std::ssize(arrays.channels()), options.memory_for_samples);
    return averaged(io::read_arrays(arrays, room), options.set);
  }
  const auto phases = options.conjugate ? io::SetPhases::as_written : io::SetPhases::conjugated;
  auto set = library_options(options.set, options.channels, phases);
  if (with_times) set.tracks = io::RowTracks::read;
  const auto wanted = origins == nullptr ? io::SampleOrigins::leave
                      : with_times       ? io::SampleOrigins::with_times
                                         : io::SampleOrigins::keep;
  auto collected = read_set(file, options.set, set, wanted, options.memory_for_samples);
  if (origins != nullptr) *origins = origins_of(collected);
  ranges = std::move(collected.ranges);
  return std::move(collected.visibilities);
}

/// What the samples of a block take among those of others, at most.
double joined_bytes(const Visibilities& block) {
  const auto of_sample = block.data().element_size() + block.weights().element_size() + 2 * sizeof(double);
  return static_cast<double>(block.data().numel()) * static_cast<double>(of_sample);
}

/// One file among several, whose baselines may hide among those of the others.
void check_unit_of_file(const Visibilities& block, const GridCoords& grid, const std::filesystem::path& file,
                        const io::ReadOptions& read) {
  try {
    io::check_uv_unit(block, grid, unit_of(file, read));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace

void declare_file(OptionSet& options, DataOptions& data) {
  options.app()
      .add_option("DATA", data.positional_data,
                  "Visibilities: .npz with uu vv weight data, a folder of such .npy, UVFITS, or a measurement set")
      ->type_name("FILE");
  options.path("--data", data.data, "The same as DATA", Record::result);
}

void declare_arrays(OptionSet& options, DataOptions& data) {
  options.choice("--uv-unit", data.uv_unit, uv_unit_choices, "Unit of uu and vv; default: as the file says", Record::result);
  options.text("--frequency", data.frequency, "HZ[,HZ...]", "Frequency of the channels", Record::result);
  options.text("--channels", data.channels, "LIST", "Channels to use, from 0, as in 0,3-7; default: all", Record::result);
}

void declare(OptionSet& options, DataOptions& data, Computing computing, const std::string& column_option) {
  declare_file(options, data);
  options.text("--more-data", data.more_data, "FILE[,FILE...]",
               "Further visibilities for one continuum image of all; --uv-unit, --frequency, --channels hold for each; "
               "write \\, for a comma in a name",
               Record::result);
  declare_grid(options, data);
  declare_arrays(options, data);
  if (computing == Computing::in_dtype_on_device)
    options.text("--device", data.device, "DEVICE",
                 "auto, cpu, cuda, cuda:N or least-loaded; several that share the run: all, or a list such as cuda:0,cuda:1",
                 Record::manner);
  if (computing != Computing::fixed) options.choice("--dtype", data.dtype, dtype_choices, "Precision", Record::result);
  declare_threads(options, data.threads);
  declare_set(options, data, column_option);
}

void declare_set(OptionSet& options, DataOptions& data, const std::string& column_option) {
  const auto reads_set = [&data] { return reads_a_set(data); };
  declare(options, data.set, reads_set, column_option);
  options.only({"--uv-unit", "--frequency"}, "with .npz or .npy files", [reads_set] { return !reads_set(); });
}

bool reads_a_set(const DataOptions& data) {
  const auto more = more_files(data);
  return is_set_or_uvfits(data.data) || std::any_of(more.begin(), more.end(), is_set_or_uvfits);
}

void declare_conjugate(OptionSet& options, DataOptions& data) {
  options.flag("--conjugate", data.conjugate,
               "Take conj(data): of arrays as a measurement set holds them; of a set that needs no conj(DATA), DATA itself",
               Record::result);
}

void declare_center(OptionSet& options, DataOptions& data) {
  data.center.reset();
  const auto set = [&data](const std::string& text) {
    data.center.reset();
    if (text != "auto") data.center = parse_offset("--center", text);
  };
  // Nothing is recorded of an image about the phase centre: what stands in run.toml beside its npix is that.
  const auto get = [&data] {
    const auto center = data.center.value_or(SkyOffset());
    return center == SkyOffset() ? std::nullopt : std::optional(toml_string(offset_value(center)));
  };
  options.parsed(
      "--center", set, get, "EAST,NORTH|auto",
      "Middle of the image, arcsec from the phase centre, to whole cells; default: auto, the phase centre, or the flux where "
      "that lies far off and --npix is auto",
      Record::result);
}

void declare_mode(OptionSet& options, DataOptions& data) {
  declare_mode(options, data.set, [&data] { return reads_a_set(data); });
}

void settle(DataOptions& data) {
  if (!data.positional_data.empty()) data.data = data.positional_data;
  if (data.data.empty()) {
    throw UsageError(error_text("DATA", "missing", "there must be visibilities to read",
                                "name a .npz file, a folder of .npy files, a UVFITS file or a measurement set"));
  }
  data.data = std::filesystem::absolute(data.data).lexically_normal();
  std::vector<std::string> more;
  for (const auto& file : more_files(data)) more.push_back(std::filesystem::absolute(file).lexically_normal().string());
  data.more_data = join_file_list(more);
  if (data.npix && *data.npix % 2 != 0) {
    throw UsageError(
        error_text("--npix", fmt::format("{}", *data.npix), "must be even", fmt::format("use --npix {}", *data.npix + 1)));
  }
  parse_channels(data.channels);
  parse_frequencies(data.frequency);
  check(data.set);
}

std::vector<std::int64_t> parse_channels(const std::string& list) { return parse_number_list("--channels", list); }

std::vector<double> parse_frequencies(const std::string& list) {
  std::vector<double> frequencies;
  for (const auto& item : list_items(list, ',')) frequencies.push_back(parse_number("frequency", item, Range::positive()));
  return frequencies;
}

std::vector<std::filesystem::path> more_files(const DataOptions& data) {
  const auto names = split_file_list(data.more_data);
  return {names.begin(), names.end()};
}

Visibilities read_visibilities(const DataOptions& options, const std::optional<GridCoords>& grid) {
  const auto read = read_options(options);
  auto files = more_files(options);
  files.insert(files.begin(), options.data);
  std::vector<DataOrigins> origins(files.size());
  std::vector<Visibilities> blocks;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::vector<io::WindowRange> ranges;
    blocks.push_back(read_one(files[i], options, read, options.origins ? &origins[i] : nullptr, ranges));
    if (options.parts) options.parts->note(i, files[i].filename().string(), ranges, blocks.back());
    if (grid && files.size() > 1) check_unit_of_file(blocks.back(), *grid, files[i], read);
  }
  if (options.origins) {
    const bool with_times = options.origins->with_times;
    *options.origins = joined_origins(origins, blocks);
    options.origins->with_times = with_times;
  }
  if (blocks.size() == 1) return std::move(blocks.front());
  double bytes = 0;
  for (const auto& block : blocks) bytes += joined_bytes(block);
  return join_samples(blocks, room_for_samples(bytes, 1, options.memory_for_samples));
}

std::optional<DataSize> arrays_size(const DataOptions& options) {
  if (!more_files(options).empty() || is_set_or_uvfits(options.data)) return std::nullopt;
  const io::VisibilityArrays arrays(options.data, read_options(options));
  const auto of_each = options.set.average_channels;
  return DataSize{(std::ssize(arrays.channels()) + of_each - 1) / of_each, arrays.nvis(), arrays.bytes(),
                  !window_ranges(arrays.reader(), arrays.nvis()).empty()};
}

Visibilities read_share(const DataOptions& options, const VisibilityShare& share) {
  auto read = read_options(options);
  if (!share.channels.empty()) {
    const io::VisibilityArrays all(options.data, read);
    const auto count = std::ssize(all.channels()), of_each = options.set.average_channels;
    // Frequencies that are given for the selected channels are selected, too.
    const bool selects_frequencies = std::ssize(read.frequencies) == count && count != all.nchan();
    const auto frequencies = std::exchange(read.frequencies, selects_frequencies ? std::vector<double>() : read.frequencies);
    read.channels.clear();
    for (const auto channel : share.channels) {
      for (auto i = channel * of_each; i < std::min((channel + 1) * of_each, count); ++i) {
        read.channels.push_back(all.channels()[static_cast<std::size_t>(i)]);
        if (selects_frequencies) read.frequencies.push_back(frequencies[static_cast<std::size_t>(i)]);
      }
    }
  }
  read.checksums = io::Checksums::ignored;
  if (share.samples) read.samples = {share.samples->begin, share.samples->end};
  const io::VisibilityArrays arrays(options.data, read);
  const auto room = room_for_samples(arrays.bytes(), std::ssize(arrays.channels()), options.memory_for_samples);
  return averaged(io::read_arrays(arrays, room), options.set);
}

void report_smearing(const DataOptions& options, const GridCoords& coords, const SkyOffset& center) {
  constexpr double much = 0.05;
  const auto& cost = *options.set.cost;
  if (!options.set.averages() || (cost.channels > 1 && !(cost.relative_width > 0))) return;
  const double edge =
      std::max(std::abs(center.east), std::abs(center.north)) + 0.5 * coords.cell_size() * static_cast<double>(coords.npix());
  const double loss = cost.loss(edge);
  const auto words = fmt::format(
      "{:.2g} % of the amplitude at the edge of the field, {:.3g}\" from the phase centre, on the longest "
      "baseline",
      100 * loss, edge);
  if (loss > much) log_warning(fmt::format("averaging costs up to {}: average less, unless nothing is there", words));
  else tell(fmt::format("smearing    averaging costs up to {}", words));
}

std::string uv_unit_name(const DataOptions& options) {
  return std::string(io::name_of(unit_of(options.data, read_options(options))));
}

void check_grid_holds(const Visibilities& visibilities, const DataOptions& options, const GridCoords& coords) {
  io::check_uv_unit(visibilities, coords, unit_of(options.data, read_options(options)));
  check_representable(visibilities.data(), visibilities.weights(), torch::kFloat64);
}

void check_grid_holds(double longest, const Tensor& frequencies, const DataOptions& options, const GridCoords& coords) {
  io::check_uv_unit(longest, frequencies, coords, unit_of(options.data, read_options(options)));
}

}  // namespace mpol::cli
