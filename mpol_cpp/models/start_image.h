#pragma once

#include <mpol_cpp/models/base_cube.h>

namespace mpol {

/// The base pixels whose image is `sky`, floored at a part of the peak of each channel so that every pixel has one.
/// @param sky    (nchan, npix, npix), any unit
/// @param floor  part of the peak
/// @return       float64 on the CPU, same shape
/// @throws DataError when a channel has no positive pixel
Tensor base_of_image(const Tensor& sky, double floor, const PixelMapping& mapping);

/// The same options with base pixels that make an image, through the inverse of their pixel mapping.
/// @param sky    (nchan, npix, npix), Jy/arcsec^2, sky orientation, on the grid of the options
/// @param floor  part of the peak of each channel below which no pixel starts
/// @throws DataError when a channel has no positive pixel
BaseCubeOptions start_at_image(BaseCubeOptions options, const Tensor& sky, double floor);

/// The same options with base pixels that make an even image.
/// @param intensity  of every pixel, Jy/arcsec^2, > 0
BaseCubeOptions start_at_intensity(BaseCubeOptions options, double intensity);

}  // namespace mpol
