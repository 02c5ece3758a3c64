#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_handle.h>
#include <mpol_cpp/io/unknown_center.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::io {
namespace {

constexpr double degrees_per_arcsec = 1.0 / 3600.0;
/// Frequencies count as evenly spaced when none is off by more than this part of a channel.
constexpr double even_spacing_tolerance = 1e-3;

/// Text that a FITS header may hold: printable ASCII.
std::string header_text(std::string text) {
  for (auto& character : text) {
    if (character < ' ' || character > '~') character = '?';
  }
  return text;
}

/// The current header of an open file, written keyword by keyword.
class HeaderWriter {
 public:
  explicit HeaderWriter(FitsHandle& file) : file_(file) {}

  void set(const char* key, double value, const char* comment) {
    fits_update_key(file_.get(), TDOUBLE, key, &value, comment, file_.status());
  }
  void set(const char* key, std::string value, const char* comment) {
    fits_update_key_str(file_.get(), key, header_text(std::move(value)).c_str(), comment, file_.status());
  }
  void set_if_known(const char* key, const std::string& value, const char* comment) {
    if (!value.empty()) set(key, value, comment);
  }
  void set_logical(const char* key, bool value, const char* comment) {
    fits_update_key_log(file_.get(), key, value ? 1 : 0, comment, file_.status());
  }
  void history(const std::string& lines) {
    std::size_t begin = 0;
    while (begin <= lines.size()) {
      const auto end = std::min(lines.find('\n', begin), lines.size());
      fits_write_history(file_.get(), header_text(lines.substr(begin, end - begin)).c_str(), file_.status());
      begin = end + 1;
    }
  }
  void axis(int number, const char* type, double reference_pixel, double reference_value, double step, const char* unit) {
    const auto key = [&](const char* stem) { return fmt::format("{}{}", stem, number); };
    set(key("CTYPE").c_str(), type, nullptr);
    set(key("CRPIX").c_str(), reference_pixel, nullptr);
    set(key("CRVAL").c_str(), reference_value, nullptr);
    set(key("CDELT").c_str(), step, nullptr);
    if (unit != nullptr) set(key("CUNIT").c_str(), unit, nullptr);
  }

 private:
  FitsHandle& file_;
};

enum class SpectralAxis { channel, frequency, channel_with_table };

SpectralAxis spectral_axis_of(const Tensor& frequencies) {
  if (!frequencies.defined()) return SpectralAxis::channel;
  const auto count = frequencies.size(0);
  if (count == 1) return SpectralAxis::frequency;
  const auto* f = frequencies.const_data_ptr<double>();
  const double step = (f[count - 1] - f[0]) / static_cast<double>(count - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!(std::abs(f[i] - (f[0] + static_cast<double>(i) * step)) < even_spacing_tolerance * std::abs(step)))
      return SpectralAxis::channel_with_table;
  }
  return SpectralAxis::frequency;
}

void write_spectral_axis(HeaderWriter& header, SpectralAxis kind, const Tensor& frequencies) {
  if (kind != SpectralAxis::frequency) return header.axis(3, "CHANNEL", 1, 0, 1, nullptr);
  const auto count = frequencies.size(0);
  const auto* f = frequencies.const_data_ptr<double>();
  // The width of a single channel is not known; one Hz keeps the axis regular.
  const double step = count > 1 ? (f[count - 1] - f[0]) / static_cast<double>(count - 1) : 1.0;
  header.axis(3, "FREQ", 1, f[0], step, "Hz");
}

void write_sky_axes(HeaderWriter& header, const GridCoords& coords, const Observation& observation) {
  const double step = coords.cell_size() * degrees_per_arcsec;
  const std::int64_t middle = coords.npix() / 2;
  const auto half = static_cast<double>(middle);
  double right_ascension = std::fmod(observation.right_ascension.value_or(0) / units::degree, 360.0);
  if (right_ascension < 0) right_ascension += 360;
  const double declination = observation.declination.value_or(0) / units::degree;
  header.axis(1, "RA---SIN", half, right_ascension, -step, "deg");
  header.axis(2, "DEC--SIN", half + 1, declination, step, "deg");
  header.set("LONPOLE", 180.0, nullptr);
  header.set("LATPOLE", declination, nullptr);
  header.set("RADESYS", "FK5", nullptr);
  header.set("EQUINOX", 2000.0, nullptr);
}

const char* name_of(FitsUnit unit) {
  switch (unit) {
    case FitsUnit::jy_per_arcsec2:
      return "Jy/arcsec2";
    case FitsUnit::jy_per_beam:
      return "Jy/beam";
    default:
      return "Jy/pixel";
  }
}

void write_beam(HeaderWriter& header, const Beam& beam) {
  header.set("BMAJ", beam.major * degrees_per_arcsec, "[deg] FWHM of the beam, major axis");
  header.set("BMIN", beam.minor * degrees_per_arcsec, "[deg] FWHM of the beam, minor axis");
  header.set("BPA", beam.position_angle / units::degree, "[deg] position angle, North through East");
}

bool beams_differ(const std::vector<Beam>& beams) {
  return std::any_of(beams.begin(), beams.end(), [&](const Beam& beam) { return beam != beams.front(); });
}

void write_header(FitsHandle& file, SpectralAxis spectral, const GridCoords& coords, const FitsOptions& options) {
  HeaderWriter header(file);
  const auto& observation = options.observation();
  header.set("BUNIT", name_of(options.unit()), nullptr);
  write_sky_axes(header, coords, observation);
  write_spectral_axis(header, spectral, options.frequencies());
  header.axis(4, "STOKES", 1, 1, 1, nullptr);
  if (observation.rest_frequency) header.set("RESTFRQ", *observation.rest_frequency, "[Hz] rest frequency");
  header.set_if_known("SPECSYS", observation.spectral_reference, nullptr);
  header.set_if_known("OBJECT", observation.object, nullptr);
  header.set_if_known("TELESCOP", observation.telescope, nullptr);
  header.set_if_known("DATE-OBS", observation.date, nullptr);
  if (beams_differ(options.beams())) {
    header.set_logical("CASAMBM", true, "one beam per channel, in the table BEAMS");
  } else if (!options.beams().empty()) {
    write_beam(header, options.beams().front());
  }
  header.set("ORIGIN", "mpol_cpp " + version(), nullptr);
  if (const auto line = unknown_centre_line(observation); !line.empty()) header.history(line);
  for (const auto& lines : options.history()) header.history(lines);
}

/// Sums of zero, replaced by write_checksums: the header then has its final length before the data follow it.
void reserve_checksums(FitsHandle& file) {
  HeaderWriter header(file);
  header.set("CHECKSUM", "0000000000000000", "checksum of this header and its data");
  header.set("DATASUM", "0", "checksum of the data");
}

/// The checksums of the current unit. cfitsio's own function would write the time of day beside them.
void write_checksums(FitsHandle& file) {
  unsigned long data_sum = 0, unit_sum = 0;
  char encoded[FLEN_VALUE] = "";
  fits_flush_file(file.get(), file.status());  // fills the last block, which counts
  fits_get_chksum(file.get(), &data_sum, &unit_sum, file.status());
  fits_modify_key_str(file.get(), "DATASUM", fmt::format("{}", data_sum).c_str(), "&", file.status());
  fits_get_chksum(file.get(), &data_sum, &unit_sum, file.status());
  constexpr int complement = 1;
  fits_encode_chksum(unit_sum, complement, encoded);
  fits_modify_key_str(file.get(), "CHECKSUM", encoded, "&", file.status());
  file.check("writing the checksums");
}

void write_planes(FitsHandle& file, const Tensor& cube, double scale) {
  LONGLONG first = 1;
  for (std::int64_t channel = 0; channel < cube.size(0); ++channel) {
    const auto plane = (cube.select(0, channel).to(torch::kCPU, torch::kFloat64) * scale).to(torch::kFloat32).contiguous();
    auto* values = const_cast<float*>(plane.const_data_ptr<float>());  // cfitsio only reads them
    fits_write_img(file.get(), TFLOAT, first, plane.numel(), values, file.status());
    file.check("writing the image");
    first += plane.numel();
  }
}

struct Column {
  const char* name;
  const char* form;
  const char* unit;
};

void create_table(FitsHandle& file, const char* name, std::int64_t rows, const std::vector<Column>& columns) {
  std::vector<char*> names, forms, units;
  for (const auto& column : columns) {  // cfitsio only reads them
    names.push_back(const_cast<char*>(column.name));
    forms.push_back(const_cast<char*>(column.form));
    units.push_back(const_cast<char*>(column.unit));
  }
  fits_create_tbl(file.get(), BINARY_TBL, rows, static_cast<int>(columns.size()), names.data(), forms.data(), units.data(), name,
                  file.status());
}

void write_number(FitsHandle& file, int column, std::int64_t row, double value) {
  fits_write_col(file.get(), TDOUBLE, column, row + 1, 1, 1, &value, file.status());
}

void write_frequencies(FitsHandle& file, const Tensor& frequencies) {
  create_table(file, "FREQUENCIES", frequencies.size(0), {{"CHANNEL", "1J", ""}, {"FREQUENCY", "1D", "Hz"}});
  reserve_checksums(file);
  for (std::int64_t channel = 0; channel < frequencies.size(0); ++channel) {
    write_number(file, 1, channel, static_cast<double>(channel));
    write_number(file, 2, channel, frequencies.const_data_ptr<double>()[channel]);
  }
  file.check("writing the table FREQUENCIES");
  write_checksums(file);
}

void write_beams(FitsHandle& file, const std::vector<Beam>& beams) {
  const auto count = static_cast<std::int64_t>(beams.size());
  create_table(file, "BEAMS", count,
               {{"BMAJ", "1E", "arcsec"}, {"BMIN", "1E", "arcsec"}, {"BPA", "1E", "deg"}, {"CHAN", "1J", ""}, {"POL", "1J", ""}});
  int channels = static_cast<int>(count), polarisations = 1;
  fits_update_key(file.get(), TINT, "NCHAN", &channels, "number of channels", file.status());
  fits_update_key(file.get(), TINT, "NPOL", &polarisations, "number of polarisations", file.status());
  reserve_checksums(file);
  for (std::int64_t channel = 0; channel < count; ++channel) {
    const auto& beam = beams[static_cast<std::size_t>(channel)];
    write_number(file, 1, channel, beam.major);
    write_number(file, 2, channel, beam.minor);
    write_number(file, 3, channel, beam.position_angle / units::degree);
    write_number(file, 4, channel, static_cast<double>(channel));
    write_number(file, 5, channel, 0);
  }
  file.check("writing the table BEAMS");
  write_checksums(file);
}

Tensor as_cube(const Tensor& image, const GridCoords& coords) {
  const auto n = coords.npix();
  const bool fits = (image.dim() == 2 || image.dim() == 3) && image.size(-1) == n && image.size(-2) == n && image.numel() > 0;
  if (!fits || image.is_complex()) {
    throw ShapeError(
        fmt::format("the image has shape ({}), {}; real (npix, npix) or (nchan, npix, npix) with npix = {} is needed",
                    fmt::join(image.sizes(), ", "), c10::toString(image.scalar_type()), n));
  }
  return image.dim() == 2 ? image.detach().unsqueeze(0) : image.detach();
}

void check_beams(const std::vector<Beam>& beams, std::int64_t nchan) {
  if (beams.size() > 1 && static_cast<std::int64_t>(beams.size()) != nchan) {
    throw ShapeError(fmt::format("{} beams for {} channel(s); none, one, or one per channel is needed", beams.size(), nchan));
  }
  for (const auto& beam : beams) {
    const bool good = std::isfinite(beam.major) && std::isfinite(beam.minor) && std::isfinite(beam.position_angle) &&
                      beam.minor > 0 && beam.major >= beam.minor;
    if (good) continue;
    throw ValueError(fmt::format("a beam of {} x {} arcsec at {} rad; both axes must be finite and > 0, the major one first",
                                 beam.major, beam.minor, beam.position_angle));
  }
}

/// The options with frequencies on the CPU in float64, checked against the cube.
FitsOptions checked(const FitsOptions& options, std::int64_t nchan) {
  auto result = options;
  check_beams(options.beams(), nchan);
  if (!options.frequencies().defined()) return result;
  result.frequencies() = options.frequencies().detach().to(torch::kCPU, torch::kFloat64).reshape({-1}).contiguous();
  if (result.frequencies().size(0) != nchan) {
    throw ShapeError(
        fmt::format("{} frequencies for {} channel(s); one per channel is needed", result.frequencies().size(0), nchan));
  }
  check_positive(result.frequencies(), "frequency");
  return result;
}

}  // namespace

void write_fits(AtomicFile& target, const Tensor& sky_cube, const GridCoords& coords, const FitsOptions& given) {
  const auto cube = as_cube(sky_cube, coords);
  const auto options = checked(given, cube.size(0));
  const auto spectral = spectral_axis_of(options.frequencies());
  constexpr std::size_t header_and_tables = 1 << 16;
  FitsBuffer memory(static_cast<std::size_t>(cube.numel()) * sizeof(float) + header_and_tables);
  auto file = FitsHandle::create(memory, target.path());
  LONGLONG sizes[4] = {coords.npix(), coords.npix(), cube.size(0), 1};
  fits_create_imgll(file.get(), FLOAT_IMG, 4, sizes, file.status());
  write_header(file, spectral, coords, options);
  reserve_checksums(file);
  file.check("writing the header");
  write_planes(file, cube, options.unit() == FitsUnit::jy_per_pixel ? coords.cell_area() : 1.0);
  write_checksums(file);
  if (spectral == SpectralAxis::channel_with_table) write_frequencies(file, options.frequencies());
  if (beams_differ(options.beams())) write_beams(file, options.beams());
  file.close();
  target.write(memory.data, memory.bytes);
  if (spectral == SpectralAxis::channel_with_table) {
    log_warning(
        "the frequencies of the channels are not evenly spaced: the third axis of FITS cubes counts channels, and their table "
        "FREQUENCIES holds the frequencies");
  }
}

void write_fits(const std::filesystem::path& path, const Tensor& sky_cube, const GridCoords& coords, const FitsOptions& options) {
  AtomicFile target(path);
  write_fits(target, sky_cube, coords, options);
  target.commit();
}

std::vector<std::filesystem::path> write_fits_split_channels(const std::filesystem::path& path, const Tensor& sky_cube,
                                                             const GridCoords& coords, const FitsOptions& given) {
  const auto cube = as_cube(sky_cube, coords);
  const auto options = checked(given, cube.size(0));
  std::vector<std::filesystem::path> paths;
  for (std::int64_t channel = 0; channel < cube.size(0); ++channel) {
    auto own = options;
    if (options.frequencies().defined()) own.frequencies() = options.frequencies().narrow(0, channel, 1);
    if (options.beams().size() > 1) own.beams() = {options.beams()[static_cast<std::size_t>(channel)]};
    const auto name = fmt::format("{}_{:04}{}", path.stem().string(), channel, path.extension().string());
    paths.push_back(path.parent_path() / name);
    write_fits(paths.back(), cube.select(0, channel), coords, own);
  }
  return paths;
}

}  // namespace mpol::io
