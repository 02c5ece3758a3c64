#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol::testing {

/// The grid of these tests.
inline const GridCoords small_grid(0.05, 16);

}  // namespace mpol::testing
