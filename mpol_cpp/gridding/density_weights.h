#pragma once

#include <cstdint>
#include <span>

#include <mpol_cpp/gridding/weighting.h>

namespace mpol::gridding {

/// Density weight D of each occupied cell of one channel, as Weighting defines it: from the summed weight of the cell
/// together with its Hermitian partner, and sums over both halves of the plane.
/// @param cells    flat indices into a packed cube of channels of npix^2 cells, increasing, all of one channel
/// @param weights  sum w of the samples in each cell
/// @param density  receives D of each cell
void density_weights(std::int64_t npix, std::span<const std::int64_t> cells, std::span<const double> weights, Weighting weighting,
                     double robust, std::span<double> density);

}  // namespace mpol::gridding
