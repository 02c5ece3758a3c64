#pragma once

#include <filesystem>

#include <mpol_cpp/io/fits.h>

namespace mpol::io {

/// The pixels of a FITS image as surface brightness: from Jy/pixel, Jy/arcsec2, or Jy/beam with the file's own beams.
/// @param path  of the file, for the message
/// @return      (nchan, rows, columns) float64, Jy/arcsec^2
/// @throws DataError for any other unit, or Jy/beam without a beam or with beams of other channels
Tensor brightness_of(const FitsImage& image, const std::filesystem::path& path);

}  // namespace mpol::io
