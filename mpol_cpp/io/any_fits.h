#pragma once

#include <filesystem>
#include <optional>

#include <mpol_cpp/images/reproject.h>
#include <mpol_cpp/io/fits.h>

namespace mpol::io {

/// An image read from a FITS file, whatever the shape and direction of its pixels.
struct AnyFitsImage {
  /// As read_fits gives it; with a lattice its cube lies as in the file, row 0 first, and cell_size is the square root of the
  /// area of a pixel, arcsec.
  FitsImage image;
  /// Where the pixels of the cube lie, unless they are square with North up (or down).
  std::optional<PixelLattice> lattice;
};

/// Reads an image as read_fits does, also one whose pixels are oblong, turned or sheared (CDELT1 and CDELT2 with CROTA2 or PC, or
/// CD); `reproject` brings its cube to square pixels. Offsets on the sky are those in the plane of its projection.
/// @throws FileError and DataError as read_fits, but for axes that are turned and pixels that are not square
AnyFitsImage read_any_fits(const std::filesystem::path& path);

}  // namespace mpol::io
