#pragma once

#include <filesystem>
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
  TORCH_ARG(Observation, observation) = {};  ///< object, telescope, date, rest frequency; the axes have no place on the sky
  TORCH_ARG(std::vector<std::string>, history) = {};  ///< lines of HISTORY
};

/// Writes maps of azimuth and radius as a FITS image: float32, axes PHI (deg), RADIUS (arcsec), FREQ (or CHANNEL), all linear,
/// with CRPIX 1 and CRVAL at the middle of the first bin. Uneven frequencies as write_fits.
/// @param map      (nr, nphi) or (nchan, nr, nphi), real, any dtype and device
/// @param radius   arcsec; @param azimuth  radian
/// @throws ShapeError for another shape; ValueError for bins that are not finite and > 0; FileError when it cannot be written
void write_polar_fits(const std::filesystem::path& path, const Tensor& map, const EvenBins& radius, const EvenBins& azimuth,
                      const PolarFitsOptions& options = {});

}  // namespace mpol::io
