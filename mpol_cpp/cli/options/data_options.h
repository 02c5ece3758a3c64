#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/options/data_blocks.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/cli/options/set_options.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/cli/program/output_options.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/visibilities/visibilities.h>
#include <mpol_cpp/visibilities/visibility_share.h>

namespace mpol::cli {

/// How visibilities are read and gridded: every verb that reads them.
struct DataOptions {
  std::filesystem::path data;
  std::filesystem::path positional_data;          ///< DATA on the command line; wins over `data`
  std::string more_data;                          ///< comma-separated files, joined with the data to one continuum block
  std::optional<io::UvUnit> uv_unit;              ///< nothing: as the file says
  std::string frequency;                          ///< comma-separated Hz
  std::string channels;                           ///< "0,3-7"
  bool conjugate = false;                         ///< conj(data)
  SetOptions set;                                 ///< of measurement sets
  std::optional<double> cell_size;                ///< arcsec; nothing: "auto", what the verb makes of the data
  std::optional<std::int64_t> npix;               ///< the same
  std::optional<SkyOffset> center = SkyOffset();  ///< of the image; nothing: the phase centre, or where the flux is, without npix
  std::string device = "auto";
  torch::Dtype dtype = torch::kFloat32;
  std::optional<std::int64_t> threads;
  std::string blocks;                    ///< "window,file": see blocks_of()
  std::shared_ptr<DataOrigins> origins;  ///< filled on reading where a verb made one
  std::shared_ptr<DataParts> parts;      ///< the same
  SampleMemory memory_for_samples;       ///< set by verbs that know what else they need
};

/// The choices of --uv-unit.
inline constexpr auto uv_unit_choices = std::to_array<NamedChoice<io::UvUnit>>(
    {{"lambda", io::UvUnit::lambda}, {"klambda", io::UvUnit::klambda}, {"m", io::UvUnit::metres}});

/// What of its computing a verb leaves to the user: --dtype, --device.
enum class Computing { fixed, in_dtype, in_dtype_on_device };

/// @param column_option  names the column of a measurement set that is read
void declare(OptionSet& options, DataOptions& data, Computing computing = Computing::fixed,
             const std::string& column_option = "--column");

/// The visibilities, DATA or --data, of verbs that declare the other options of data themselves.
void declare_file(OptionSet& options, DataOptions& data);
/// What arrays do not say of themselves, --uv-unit and --frequency, and --channels, of the same.
void declare_arrays(OptionSet& options, DataOptions& data);

/// How measurement sets are read, of verbs that declare the other options of data themselves.
void declare_set(OptionSet& options, DataOptions& data, const std::string& column_option = "--column");

/// `--mode` for measurement sets, of verbs that have no other.
void declare_mode(OptionSet& options, DataOptions& data);

/// Whether any of the data is a measurement set, once all is parsed.
bool reads_a_set(const DataOptions& data);

// After parsing: what is required is there, and paths no longer depend on the working directory. @throws UsageError
void settle(DataOptions& data);

/// The files of --more-data.
std::vector<std::filesystem::path> more_files(const DataOptions& data);

/// `--conjugate` of a verb that reads visibilities.
void declare_conjugate(OptionSet& options, DataOptions& data);

/// `--center` of a verb that images.
void declare_center(OptionSet& options, DataOptions& data);

/// Channel numbers of a list such as "0,3-7". @throws UsageError
std::vector<std::int64_t> parse_channels(const std::string& list);
/// Frequencies of a list such as "230.5e9,231e9", Hz. @throws UsageError
std::vector<double> parse_frequencies(const std::string& list);

/// The visibilities that the options name, units applied, channels selected; of several files, all samples as one channel.
/// @param grid  where given, each of several files is refused by itself whose u, v cannot be in their unit
/// @throws mpol::Error
Visibilities read_visibilities(const DataOptions& options, const std::optional<GridCoords>& grid = std::nullopt);

/// The size of data.
struct DataSize {
  std::int64_t nchan;     ///< that are selected, averaged
  std::int64_t samples;   ///< of each
  double bytes;           ///< that all of them take
  bool in_parts = false;  ///< stretches of samples are looked at apart
};
/// That of one file of arrays, before any sample is read; nothing where the data are anything else, whose samples are known only
/// when they have been read.
std::optional<DataSize> arrays_size(const DataOptions& options);

/// Reads no more than a share, of data that have an arrays_size().
/// @param share  channels of those that the options select and average  @throws as read_visibilities
Visibilities read_share(const DataOptions& options, const VisibilityShare& share);

/// Says what averaging on reading costs at the edge of an image, where there was any.
void report_smearing(const DataOptions& options, const GridCoords& coords, const SkyOffset& center);

/// The unit in which u and v of the file are read: "lambda", "klambda" or "m".
std::string uv_unit_name(const DataOptions& options);

/// Refuses u, v that cannot be in the unit they were read in: no baseline reaches two cells, or some lie beyond the
/// grid; and data or weights with which float64 cannot be computed. @throws DataError naming the readings, or the values
void check_grid_holds(const Visibilities& visibilities, const DataOptions& options, const GridCoords& coords);
/// The same of u, v alone, by the largest |u| or |v|, wavelengths, of data with these frequencies, (nchan) Hz or undefined.
void check_grid_holds(double longest, const Tensor& frequencies, const DataOptions& options, const GridCoords& coords);

}  // namespace mpol::cli
