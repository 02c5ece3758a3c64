#pragma once

#include <vector>

#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/sample_blocks.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// How the data of a block differ from what they should be: they show the sky displaced by (east, north), `amplitude` times as
/// bright, and their weights are too small by `weight_scale`:
///
///   d = a exp(-2 pi i (u l + v m)) V + noise of the variance 1/(s w)
struct BlockGain {
  double east = 0, north = 0;  ///< arcsec
  double amplitude = 1;        ///< > 0
  double weight_scale = 1;     ///< > 0

  bool operator==(const BlockGain&) const = default;  ///< to the last bit
};

/// Which of them are fitted.
struct GainKinds {
  bool shift = false, amplitude = false, weight_scale = false;  ///< whether it is

  bool any() const { return shift || amplitude || weight_scale; }  ///< whether there is something to fit
};

/// The data as they should be, whose chi^2 of an image is that of the data as they are with the gains in the model:
/// d exp(+2 pi i (u l + v m)) / a, with weights s a^2 w, in the dtypes of the data.
/// @param gains  one for each block
/// @param room   where the new data and weights are kept
/// @throws ShapeError, ValueError for blocks that are not those of the samples, for another number of gains, and for amplitudes
///         and weight scales that are not above 0
Visibilities calibrated(const Visibilities& visibilities, const SampleBlocks& blocks, const std::vector<BlockGain>& gains,
                        const ArrayRoom& room = {});

}  // namespace mpol
