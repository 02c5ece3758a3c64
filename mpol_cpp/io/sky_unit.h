#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/io/fits.h>

namespace mpol::io {

/// The solid angle, arcsec^2, over which a unit of brightness counts flux: of a pixel, 1, or of each beam; float64, one number or
/// one for each beam. Nothing for a unit other than Jy/pixel, Jy/arcsec2 and Jy/beam, or Jy/beam without a beam.
/// @param unit       as BUNIT says it, in any case
/// @param cell_size  arcsec
std::optional<Tensor> unit_area(const std::string& unit, const std::vector<Beam>& beams, double cell_size);

/// What the pixels of an image are divided by to be Jy/arcsec^2: unit_area() of its unit, (1) or (nchan).
/// @param header  all but the pixels  @param path  of the file, for the message  @throws DataError as brightness_of()
Tensor brightness_area(const FitsImage& header, std::int64_t nchan, const std::filesystem::path& path);

/// The pixels of a FITS image as surface brightness: from Jy/pixel, Jy/arcsec2, or Jy/beam with the file's own beams.
/// @param path  of the file, for the message
/// @return      (nchan, rows, columns) float64, Jy/arcsec^2
/// @throws DataError for any other unit, or Jy/beam without a beam or with beams of other channels
Tensor brightness_of(const FitsImage& image, const std::filesystem::path& path);

}  // namespace mpol::io
