#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

using torch::Tensor;

/// Bins of one width along an axis.
struct EvenBins {
  double first_middle = 0;  ///< middle of the first bin: arcsec, or radian of azimuth
  double width = 1;         ///< of each bin, in that unit, > 0
};

/// What the header of a polar map says beside its axes; all of it optional.
struct PolarFitsOptions {
  TORCH_ARG(std::string, unit);  ///< BUNIT; empty: none
  /// (nchan) Hz. Without it the third axis is CHANNEL 0, 1, …
  TORCH_ARG(Tensor, frequencies) = {};
  /// Object, telescope, date, rest frequency, polarisation; the axes have no place on the sky.
  TORCH_ARG(Observation, observation) = {};
  TORCH_ARG(std::vector<std::string>, history) = {};  ///< lines of HISTORY
};

/// Axes of maps of azimuth and radius.
struct PolarAxes {
  std::int64_t nchan = 1, nr = 1, nphi = 1;  ///< channels, and bins of each
  EvenBins radius, azimuth;                  ///< arcsec, and radian
};

/// Maps of azimuth and radius that are written as a FITS image some channels at a time, so that those of a cube larger than
/// memory can be: float32, axes PHI (deg), RADIUS (arcsec), FREQ (or CHANNEL), all linear, with CRPIX 1 and CRVAL at the middle
/// of the first bin, and STOKES where they are of anything but Stokes I. Uneven frequencies as write_fits. The file appears under
/// its name with finish(), complete, or not at all.
class PolarFitsWriter {
 public:
  /// @throws ShapeError for frequencies of another number of channels; ValueError for bins that are not finite and > 0, or no
  ///         channels and bins; FileError when it cannot be written
  PolarFitsWriter(const std::filesystem::path& path, const PolarAxes& axes, const PolarFitsOptions& options = {});
  ~PolarFitsWriter();
  PolarFitsWriter(const PolarFitsWriter&) = delete;
  PolarFitsWriter& operator=(const PolarFitsWriter&) = delete;

  /// Writes the next channels. @param maps  (n, nr, nphi), real, any dtype and device
  /// @throws ShapeError for another shape, or more channels than there are; FileError
  void add(const Tensor& maps);
  /// Ends the file. @throws ShapeError unless every channel was written; FileError
  void finish();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

/// The same of maps that are there together.
/// @param map      (nr, nphi) or (nchan, nr, nphi), real, any dtype and device
/// @param radius   arcsec; @param azimuth  radian
/// @throws ShapeError for another shape; ValueError for bins that are not finite and > 0; FileError when it cannot be written
void write_polar_fits(const std::filesystem::path& path, const Tensor& map, const EvenBins& radius, const EvenBins& azimuth,
                      const PolarFitsOptions& options = {});

}  // namespace mpol::io
