#pragma once

#include <cmath>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol::testing {

/// A Gaussian ring in the plane of a disc: exp(-((r - radius)/width)^2 / 2), (1, npix, npix) float64, sky.
inline Tensor inclined_ring(const GridCoords& coords, const DiscGeometry& geometry, double radius, double width) {
  const auto x = coords.sky_x() - geometry.offset_east, y = coords.sky_y() - geometry.offset_north;
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle);
  const auto r = at::hypot((x * c - y * s) / std::cos(geometry.inclination), x * s + y * c);
  return at::exp(-0.5 * ((r - radius) / width).square()).unsqueeze(0);
}

}  // namespace mpol::testing
