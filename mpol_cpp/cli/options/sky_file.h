#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/models/base_cube.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// Where the channels of a part of a cube stand in it.
struct PlaceInCube {
  std::int64_t first = 0;  ///< of the part
  std::int64_t nchan = 0;  ///< of the cube; 0: the part is all of it
};

/// What images that a fit reads are brought to.
struct SkyTarget {
  GridCoords coords;
  std::int64_t nchan = 1;
  Observation observation;  ///< of the data: images of another phase centre are taken with a warning
  PlaceInCube place = {};   ///< of these channels: of a file of the cube no others are taken
};

/// An image or cube from a FITS file in Jy/arcsec^2, (nchan, npix, npix) float64, sky orientation: brought to the coordinates of
/// the run by its reference pixel, wherever that is, and regridded where its pixels have another size; one channel in the file
/// serves every channel of the model.
/// @param option  that named the file, for messages
/// @throws mpol::Error when it cannot be read, has another number of channels, or is in a unit that cannot be converted
Tensor read_sky(const std::filesystem::path& path, const std::string& option, const SkyTarget& target);

/// A mask from a FITS file, (nchan, npix, npix) float64, brought to the coordinates of the run in the same way: 1 where its value
/// is neither 0 nor blank (NaN), 0 elsewhere and beyond it; a pixel that only part of the mask's pixels cover goes with the
/// larger part.
/// @param option  that named the file, for messages
/// @throws mpol::Error as above, and when no pixel of the run is marked, in any channel
Tensor read_mask(const std::filesystem::path& path, const SkyTarget& target, const std::string& option = "--mask");

/// What HISTORY says of how such an image was brought to the run's pixels; empty where they are its own.
std::string regrid_words(const std::filesystem::path& path, const std::string& option, const SkyTarget& target, SkyUnit unit);

}  // namespace mpol::cli
