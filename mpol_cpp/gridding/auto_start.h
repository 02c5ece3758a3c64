#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// An image to start a fit from (`mpol image --start auto`): as bright as the data say, whatever their units, field and
/// telescope. Of each channel
///
///   I = s (max(D, 0)^2 + f),   s = sum W Re(V* M) / sum W |M|^2
///
/// with D the dirty image (Briggs, robust 0.5), squared to have little of its sidelobes and noise, f a floor over the field that
/// holds 1 % of the flux, and s the scale with which the cells' model M of the image fits their averages V best. A channel
/// without a source, where s is not positive, starts with the flux of a point source as bright as the noise.
/// @param dataset  float64, on the CPU
/// @return         (nchan, npix, npix) float64, Jy/arcsec^2, > 0
Tensor auto_start(const GriddedDataset& dataset);

/// The same from loose visibilities, whatever their scatter in uv cells.
/// @param channels  which data channels feed which image channel
/// @throws DataError when a baseline lies outside the grid; ValueError for a channel that is not there
Tensor auto_start(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels);

}  // namespace mpol
