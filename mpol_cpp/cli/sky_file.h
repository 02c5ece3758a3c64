#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/base_cube.h>

namespace mpol::cli {

/// An image or cube from a FITS file in Jy/arcsec^2, (nchan, npix, npix) float64, sky orientation, regridded to
/// the coordinates of the run where it lies on others; one channel in the file serves every channel of the model.
/// @param option  that named the file, for messages
/// @throws mpol::Error when it cannot be read, has another number of channels, or is in a unit that cannot be converted
Tensor read_sky(const std::filesystem::path& path, const std::string& option, const GridCoords& coords, std::int64_t nchan);

/// A mask from a FITS file on the grid of the run: 1 where its value is not 0, (1 or nchan, npix, npix) float64.
/// @throws mpol::Error as above, and when it lies on another grid
Tensor read_mask(const std::filesystem::path& path, const GridCoords& coords, std::int64_t nchan);

/// The mapping of the standard model, I = softplus(b), with I = 0 where the mask is 0.
PixelMapping masked_mapping(const Tensor& mask);

}  // namespace mpol::cli
