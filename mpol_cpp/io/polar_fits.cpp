#include <mpol_cpp/io/polar_fits.h>

#include <cmath>

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
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::io {
namespace {

Tensor as_maps(const Tensor& map) {
  if (map.is_complex() || (map.dim() != 2 && map.dim() != 3) || map.numel() == 0) {
    throw ShapeError(fmt::format("the map has shape ({}), {}; real (nr, nphi) or (nchan, nr, nphi) is needed",
                                 fmt::join(map.sizes(), ", "), c10::toString(map.scalar_type())));
  }
  return map.dim() == 2 ? map.detach().unsqueeze(0) : map.detach();
}

void check_even_bins(const EvenBins& bins, const char* what) {
  if (std::isfinite(bins.first_middle) && std::isfinite(bins.width) && bins.width > 0) return;
  throw ValueError(fmt::format("bins in {} of width {} from {} on; both must be finite, and the width > 0", what, bins.width,
                               bins.first_middle));
}

void write_header(FitsHandle& file, const PolarAxes& axes, SpectralAxis spectral, const Tensor& frequencies,
                  const PolarFitsOptions& options) {
  const auto& observation = options.observation();
  const bool has_stokes = observation.stokes != Stokes::i;
  LONGLONG sizes[4] = {axes.nphi, axes.nr, axes.nchan, 1};
  fits_create_imgll(file.get(), FLOAT_IMG, has_stokes ? 4 : 3, sizes, file.status());
  HeaderWriter header(file);
  header.set_if_known("BUNIT", options.unit(), nullptr);
  header.axis(axis_number(ImageAxis::x), "PHI", 1, axes.azimuth.first_middle / units::degree, axes.azimuth.width / units::degree,
              "deg");
  header.axis(axis_number(ImageAxis::y), "RADIUS", 1, axes.radius.first_middle, axes.radius.width, "arcsec");
  write_spectral_axis(header, spectral, frequencies);
  if (has_stokes) write_stokes_axis(header, observation.stokes);
  if (observation.rest_frequency) header.set("RESTFRQ", *observation.rest_frequency, "[Hz] rest frequency");
  header.set_if_known("SPECSYS", observation.spectral_reference, nullptr);
  header.set_if_known("OBJECT", observation.object, nullptr);
  header.set_if_known("TELESCOP", observation.telescope, nullptr);
  header.set_if_known("DATE-OBS", observation.date, nullptr);
  header.set("ORIGIN", "mpol_cpp " + version(), nullptr);
  for (const auto& lines : options.history()) header.history(lines);
  reserve_checksums(file);
  file.check("writing the header");
}

}  // namespace

struct PolarFitsWriter::File {
  File(const std::filesystem::path& path, const PolarAxes& all)
      : target(path), handle(FitsHandle::create(target.temporary_path(), target.path())), axes(all) {}

  AtomicFile target;
  FitsHandle handle;
  PolarAxes axes;
  SpectralAxis spectral = SpectralAxis::channel;
  Tensor frequencies;
  std::int64_t written = 0;  // channels
};

PolarFitsWriter::PolarFitsWriter(const std::filesystem::path& path, const PolarAxes& axes, const PolarFitsOptions& options) {
  check_even_bins(axes.radius, "radius");
  check_even_bins(axes.azimuth, "azimuth");
  if (axes.nchan < 1 || axes.nr < 1 || axes.nphi < 1) {
    throw ValueError(
        fmt::format("maps of {} x {} bins in {} channels; at least one of each is needed", axes.nr, axes.nphi, axes.nchan));
  }
  const auto frequencies = checked_frequencies(options.frequencies(), axes.nchan);
  file_ = std::make_unique<File>(path, axes);
  file_->frequencies = frequencies;
  file_->spectral = spectral_axis_of(frequencies);
  write_header(file_->handle, axes, file_->spectral, frequencies, options);
}

PolarFitsWriter::~PolarFitsWriter() = default;

void PolarFitsWriter::add(const Tensor& maps) {
  const auto& axes = file_->axes;
  const bool fits = maps.dim() == 3 && !maps.is_complex() && maps.size(1) == axes.nr && maps.size(2) == axes.nphi &&
                    maps.size(0) <= axes.nchan - file_->written;
  if (!fits) {
    throw ShapeError(fmt::format("maps of shape ({}), {}: expected real (n, {}, {}) of the {} channels that are left",
                                 fmt::join(maps.sizes(), ", "), c10::toString(maps.scalar_type()), axes.nr, axes.nphi,
                                 axes.nchan - file_->written));
  }
  write_planes(file_->handle, maps.detach(), 1, file_->written);
  file_->written += maps.size(0);
}

void PolarFitsWriter::finish() {
  auto& [target, handle, axes, spectral, frequencies, written] = *file_;
  if (written != axes.nchan)
    throw ShapeError(fmt::format("{} of {} channels of polar maps were written; each is needed", written, axes.nchan));
  write_checksums(handle);
  const bool table = spectral == SpectralAxis::channel_with_table;
  if (table) write_frequencies(handle, frequencies);
  handle.close();
  target.commit();
  if (table) warn_of_uneven_frequencies();
}

void write_polar_fits(const std::filesystem::path& path, const Tensor& map, const EvenBins& radius, const EvenBins& azimuth,
                      const PolarFitsOptions& options) {
  const auto maps = as_maps(map);
  PolarFitsWriter writer(path, {maps.size(0), maps.size(1), maps.size(2), radius, azimuth}, options);
  writer.add(maps);
  writer.finish();
}

}  // namespace mpol::io
