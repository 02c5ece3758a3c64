#pragma once

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

using torch::Tensor;

/// The largest part of each channel's flux that one of the shortest baselines sees of an image, (nchan) float64 on
/// the CPU, at most 1, and 1 of an empty one. The rest is extrapolated to baselines that are not there: sources that agree to
/// first order in what these resolve differ in flux by the square of the part that none sees.
/// @param sky       (nchan, npix, npix), Jy/arcsec^2, sky orientation
/// @param channels  which data channels belong to which image channel
/// @throws ShapeError when it is not on the grid; DataError when baselines do not fit the grid
Tensor flux_seen(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities, const ChannelMap& channels);

}  // namespace mpol
