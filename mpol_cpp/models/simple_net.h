#pragma once

#include <mpol_cpp/models/gridded_net.h>

namespace mpol {

/// Options of SimpleNet: those of GriddedNet with the start value of MPoL v0.1.
struct SimpleNetOptions : GriddedNetOptions {
  /// Base pixels that start at 0.05. @param coords  the grid of the image
  SimpleNetOptions(GridCoords coords) : GriddedNetOptions(coords) { start(0.05); }  // NOLINT: implicit, as its base
};

/// The model of MPoL v0.1's tutorials: GriddedNet under its older name, with base pixels that start at 0.05.
TORCH_MODULE_IMPL(SimpleNet, GriddedNetImpl);

}  // namespace mpol
