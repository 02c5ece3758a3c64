#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/beam.h>

namespace mpol::cli {

/// The beams of the channels [begin, end): one of all stays one.
inline std::vector<Beam> beams_of(const std::vector<Beam>& beams, std::int64_t begin, std::int64_t end) {
  if (beams.size() <= 1) return beams;
  return {beams.begin() + begin, beams.begin() + end};
}

/// What it takes to convolve a channel: the padded image, its transform and what that is multiplied by, at most twice as wide.
inline double bytes_of_convolution(const GridCoords& coords) {
  const double side = 2 * static_cast<double>(coords.npix());
  return 4 * sizeof(double) * side * side;
}

}  // namespace mpol::cli
