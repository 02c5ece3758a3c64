#pragma once

#include <filesystem>
#include <string>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/io/fits.h>

namespace mpol::cli {

/// An image from a FITS file on a grid of this library.
struct SkyImage {
  Tensor cube;             ///< (nchan, npix, npix) float64, sky orientation, in `unit`
  GridCoords coords;       ///< even and square about the phase centre; pixels that the file lacks are 0
  std::string unit;        ///< of the pixels
  io::FitsOptions header;  ///< frequencies, observation and beams as far as they are known, to write the same with
};

/// The unit that a verb wants an image in.
enum class SkyUnit {
  brightness,  ///< Jy/arcsec^2, converted
  as_written,  ///< as the file has it
};

/// Reads an image of any shape and puts it on the smallest even square grid about its phase centre that holds it.
/// @param option  that named the file, for messages
/// @throws mpol::Error when it cannot be read, its phase centre lies between pixels or far outside, a pixel is not finite,
///         or the unit cannot be converted
SkyImage read_sky_image(const std::filesystem::path& path, const std::string& option, SkyUnit unit = SkyUnit::brightness);

/// @param name_b  of the second image, for the message  @throws DataError unless both have the same channels, pixels and cells
void check_same_grid(const SkyImage& a, const SkyImage& b, const std::string& name_b);

}  // namespace mpol::cli
