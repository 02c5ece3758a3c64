#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::losses::detail {

/// Loose visibilities as a likelihood wants them.
struct LooseSamples {
  Visibilities visibilities;                 ///< the data channels of all image channels, in their order
  std::vector<std::int64_t> image_channels;  ///< of each of them
  std::int64_t occupied_cells;               ///< of the grid, for each image channel, summed over them
};

/// @throws ValueError for a channel that is not there; DataError when baselines do not fit the grid
LooseSamples loose_samples(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels);

/// Marks the cells of the grid that hold samples of each image channel.
/// @param image_channels  of each channel of the baselines
/// @param occupied        (image channels, npix, npix) bool, ground order
void mark_occupied(const GridCoords& coords, const Baselines& baselines, const std::vector<std::int64_t>& image_channels,
                   const Tensor& occupied);

}  // namespace mpol::losses::detail
