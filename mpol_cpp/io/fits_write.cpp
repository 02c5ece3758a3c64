#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/io/axes/fits_axes.h>
#include <mpol_cpp/io/axes/spectral_axis.h>
#include <mpol_cpp/io/axes/stokes_axis.h>
#include <mpol_cpp/io/cfitsio/fits_handle.h>
#include <mpol_cpp/io/cfitsio/header_writer.h>
#include <mpol_cpp/io/cfitsio/plane_writer.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_cube.h>
#include <mpol_cpp/io/unknown_center.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::io {
namespace {

constexpr double degrees_per_arcsec = 1.0 / 3600.0;

/// An offset in cells; the whole number where it is one but for rounding.
double in_cells(double offset, const GridCoords& coords) {
  constexpr double rounding = 1e-6;
  const double cells = offset / coords.cell_size();
  return std::abs(cells - std::round(cells)) < rounding ? std::round(cells) : cells;
}

void write_sky_axes(HeaderWriter& header, const GridCoords& coords, const Observation& observation) {
  const double step = coords.cell_size() * degrees_per_arcsec;
  const std::int64_t middle = coords.npix() / 2;
  const auto half = static_cast<double>(middle);
  const auto& center = observation.center;  // of the image: a SIN projection about the phase centre is in its direction cosines
  const double columns = in_cells(center.east, coords), rows = in_cells(center.north, coords);
  double right_ascension = std::fmod(observation.right_ascension.value_or(0) / units::degree, 360.0);
  if (right_ascension < 0) right_ascension += 360;
  const double declination = observation.declination.value_or(0) / units::degree;
  header.axis(axis_number(ImageAxis::x), "RA---SIN", half + columns, right_ascension, -step, "deg");
  header.axis(axis_number(ImageAxis::y), "DEC--SIN", half + 1 - rows, declination, step, "deg");
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
    case FitsUnit::none:
      return "";
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

bool has_samples(const FitsOptions& options) { return options.planes() == FitsPlanes::samples; }

void write_header(FitsHandle& file, SpectralAxis spectral, const GridCoords& coords, const FitsOptions& options) {
  HeaderWriter header(file);
  const auto& observation = options.observation();
  header.set("BUNIT", name_of(options.unit()), nullptr);
  write_sky_axes(header, coords, observation);
  write_spectral_axis(header, spectral, options.frequencies());
  write_stokes_axis(header, observation.stokes);
  if (has_samples(options)) {
    header.axis(axis_number(ImageAxis::sample), "SAMPLE", 1, 0, 1, nullptr);
    const auto& [factor, growth, width] = options.sample_errors();
    if (factor) header.set("ERRFACT", *factor, "of errors over differences of samples");
    if (growth) header.set("ERRGROW", *growth, "what data still hold, over the image");
    if (width) header.set("ERRWIDTH", *width, "[arcsec] that smooths the image for that");
  }
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
  if (const auto line = unknown_center_line(observation); !line.empty()) header.history(line);
  for (const auto& lines : options.history()) header.history(lines);
}

void write_beams(FitsHandle& file, const std::vector<Beam>& beams) {
  const auto count = static_cast<std::int64_t>(beams.size());
  create_table(file, "BEAMS", count,
               {{"BMAJ", "1E", "arcsec"}, {"BMIN", "1E", "arcsec"}, {"BPA", "1E", "deg"}, {"CHAN", "1J", ""}, {"POL", "1J", ""}});
  int channels = static_cast<int>(count), polarizations = 1;
  fits_update_key(file.get(), TINT, "NCHAN", &channels, "number of channels", file.status());
  fits_update_key(file.get(), TINT, "NPOL", &polarizations, "number of polarisations", file.status());
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
FitsOptions checked(const FitsOptions& options, std::int64_t planes) {
  auto result = options;
  const auto nchan = has_samples(options) ? 1 : planes;
  check_beams(options.beams(), nchan);
  result.frequencies() = checked_frequencies(options.frequencies(), nchan);
  return result;
}

/// Begins the image of a new file.
void begin_image(FitsHandle& file, const GridCoords& coords, std::int64_t planes, SpectralAxis spectral,
                 const FitsOptions& options) {
  const bool samples = has_samples(options);
  std::array<LONGLONG, axis_number(ImageAxis::sample)> sizes;
  sizes.fill(1);
  const auto length = [&sizes](ImageAxis axis) -> LONGLONG& { return sizes[static_cast<std::size_t>(axis)]; };
  length(ImageAxis::x) = length(ImageAxis::y) = coords.npix();
  length(samples ? ImageAxis::sample : ImageAxis::channel) = planes;
  const int count = axis_number(samples ? ImageAxis::sample : ImageAxis::stokes);
  fits_create_imgll(file.get(), FLOAT_IMG, count, sizes.data(), file.status());
  write_header(file, spectral, coords, options);
  reserve_checksums(file);
  file.check("writing the header");
}

/// What pixels of the given unit are multiplied by in the file.
double scale_of(const GridCoords& coords, const FitsOptions& options) {
  return options.unit() == FitsUnit::jy_per_pixel ? coords.cell_area() : 1.0;
}

/// Ends the image, and writes the tables behind it.
void end_file(FitsHandle& file, SpectralAxis spectral, const FitsOptions& options) {
  write_checksums(file);
  if (spectral == SpectralAxis::channel_with_table) write_frequencies(file, options.frequencies());
  if (beams_differ(options.beams())) write_beams(file, options.beams());
  file.close();
}

}  // namespace

void write_fits(AtomicFile& target, const Tensor& sky_cube, const GridCoords& coords, const FitsOptions& given) {
  const auto cube = as_cube(sky_cube, coords);
  const auto options = checked(given, cube.size(0));
  const auto spectral = spectral_axis_of(options.frequencies());
  constexpr std::size_t header_and_tables = 1 << 16;
  FitsBuffer memory(static_cast<std::size_t>(cube.numel()) * sizeof(float) + header_and_tables);
  auto file = FitsHandle::create(memory, target.path());
  begin_image(file, coords, cube.size(0), spectral, options);
  write_planes(file, cube, scale_of(coords, options));
  end_file(file, spectral, options);
  target.write(memory.data, memory.bytes);
  if (spectral == SpectralAxis::channel_with_table) warn_of_uneven_frequencies();
}

void write_fits(const std::filesystem::path& path, const Tensor& sky_cube, const GridCoords& coords, const FitsOptions& options) {
  AtomicFile target(path);
  write_fits(target, sky_cube, coords, options);
  target.commit();
}

struct FitsCubeWriter::File {
  File(const std::filesystem::path& path, const GridCoords& grid, std::int64_t channels, const FitsOptions& checked_options)
      : target(path),
        handle(FitsHandle::create(target.temporary_path(), target.path())),
        coords(grid),
        nchan(channels),
        options(checked_options),
        spectral(spectral_axis_of(options.frequencies())) {}

  AtomicFile target;
  FitsHandle handle;
  GridCoords coords;
  std::int64_t nchan;
  FitsOptions options;
  SpectralAxis spectral;
  std::int64_t written = 0;  // channels
};

FitsCubeWriter::FitsCubeWriter(const std::filesystem::path& path, const GridCoords& coords, std::int64_t nchan,
                               const FitsOptions& options) {
  if (nchan < 1) throw ValueError(fmt::format("a cube of {} channels; at least one is needed", nchan));
  file_ = std::make_unique<File>(path, coords, nchan, checked(options, nchan));
  begin_image(file_->handle, coords, nchan, file_->spectral, file_->options);
}

FitsCubeWriter::~FitsCubeWriter() = default;

void FitsCubeWriter::add(const Tensor& sky_cube) {
  const auto n = file_->coords.npix(), left = file_->nchan - file_->written;
  const bool fits =
      sky_cube.dim() == 3 && !sky_cube.is_complex() && sky_cube.size(1) == n && sky_cube.size(2) == n && sky_cube.size(0) <= left;
  if (!fits) {
    throw ShapeError(fmt::format("channels of shape ({}), {}: expected real (n, {}, {}) of the {} channels that are left",
                                 fmt::join(sky_cube.sizes(), ", "), c10::toString(sky_cube.scalar_type()), n, n, left));
  }
  write_planes(file_->handle, sky_cube.detach(), scale_of(file_->coords, file_->options), file_->written);
  file_->written += sky_cube.size(0);
}

void FitsCubeWriter::finish() {
  auto& file = *file_;
  if (file.written != file.nchan)
    throw ShapeError(fmt::format("{} of {} channels of a cube were written; each is needed", file.written, file.nchan));
  end_file(file.handle, file.spectral, file.options);
  file.target.commit();
  if (file.spectral == SpectralAxis::channel_with_table) warn_of_uneven_frequencies();
}

std::vector<std::filesystem::path> write_fits_split_channels(const std::filesystem::path& path, const Tensor& sky_cube,
                                                             const GridCoords& coords, const FitsOptions& given) {
  if (has_samples(given))
    throw ValueError("samples of an image are planes of one file, not channels: write those of each channel with write_fits");
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
