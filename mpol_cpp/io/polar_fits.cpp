#include <mpol_cpp/io/polar_fits.h>

#include <cmath>
#include <cstddef>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/io/cfitsio/fits_handle.h>
#include <mpol_cpp/io/cfitsio/header_writer.h>
#include <mpol_cpp/io/cfitsio/plane_writer.h>
#include <mpol_cpp/io/spectral_axis.h>
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

}  // namespace

void write_polar_fits(const std::filesystem::path& path, const Tensor& map, const EvenBins& radius, const EvenBins& azimuth,
                      const PolarFitsOptions& options) {
  const auto maps = as_maps(map);
  check_even_bins(radius, "radius");
  check_even_bins(azimuth, "azimuth");
  const auto frequencies = checked_frequencies(options.frequencies(), maps.size(0));
  const auto spectral = spectral_axis_of(frequencies);
  AtomicFile target(path);
  constexpr std::size_t header_and_tables = 1 << 16;
  FitsBuffer memory(static_cast<std::size_t>(maps.numel()) * sizeof(float) + header_and_tables);
  auto file = FitsHandle::create(memory, target.path());
  LONGLONG sizes[3] = {maps.size(2), maps.size(1), maps.size(0)};
  fits_create_imgll(file.get(), FLOAT_IMG, 3, sizes, file.status());
  HeaderWriter header(file);
  header.set_if_known("BUNIT", options.unit(), nullptr);
  header.axis(1, "PHI", 1, azimuth.first_middle / units::degree, azimuth.width / units::degree, "deg");
  header.axis(2, "RADIUS", 1, radius.first_middle, radius.width, "arcsec");
  write_spectral_axis(header, spectral, frequencies);
  const auto& observation = options.observation();
  if (observation.rest_frequency) header.set("RESTFRQ", *observation.rest_frequency, "[Hz] rest frequency");
  header.set_if_known("SPECSYS", observation.spectral_reference, nullptr);
  header.set_if_known("OBJECT", observation.object, nullptr);
  header.set_if_known("TELESCOP", observation.telescope, nullptr);
  header.set_if_known("DATE-OBS", observation.date, nullptr);
  header.set("ORIGIN", "mpol_cpp " + version(), nullptr);
  for (const auto& lines : options.history()) header.history(lines);
  reserve_checksums(file);
  file.check("writing the header");
  write_planes(file, maps, 1);
  write_checksums(file);
  if (spectral == SpectralAxis::channel_with_table) write_frequencies(file, frequencies);
  file.close();
  target.write(memory.data, memory.bytes);
  target.commit();
  if (spectral == SpectralAxis::channel_with_table) warn_of_uneven_frequencies();
}

}  // namespace mpol::io
