#pragma once

#include <vector>

#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// The samples of all channels of several blocks of data (spectral windows, configurations, pointings in time) as one channel,
/// block after block and channel after channel, each at its own u, v: what a continuum image is made from. Blocks may have
/// different numbers of channels and samples. Within one block `ChannelMap::continuum` does the same without a copy.
///
/// u and v are in wavelengths: as they are where all blocks hold them so, else float64. Other dtypes are the widest of the
/// blocks. The frequency is the mean over all channels, if all are known; the observation is the first block's.
/// @param room  where the joined samples are kept
/// @throws ValueError without blocks; DataError for blocks whose phase centres differ by more than 1e-9 radian (0.2 mas), or
///         that are of different polarisations (Observation::stokes)
Visibilities join_samples(const std::vector<Visibilities>& blocks, const ArrayRoom& room = {});

}  // namespace mpol
