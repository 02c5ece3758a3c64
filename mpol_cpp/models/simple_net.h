#pragma once

#include <mpol_cpp/models/gridded_net.h>

namespace mpol {

/// Options of SimpleNet: those of GriddedNet with the start value of MPoL v0.1.
struct SimpleNetOptions : GriddedNetOptions {
  SimpleNetOptions(GridCoords coords) : GriddedNetOptions(coords) { start(0.05); }  // NOLINT: implicit, as its base
};

/// The model of MPoL v0.1's tutorials: the same network as GriddedNet under its older name, with base pixels that
/// start at 0.05.
class SimpleNetImpl : public GriddedNetImpl {
 public:
  explicit SimpleNetImpl(SimpleNetOptions options) : GriddedNetImpl(std::move(options)) {}
  /// Takes what the chained options of GriddedNet return; `start` is theirs.
  explicit SimpleNetImpl(GriddedNetOptions options) : GriddedNetImpl(std::move(options)) {}
};

TORCH_MODULE(SimpleNet);

}  // namespace mpol
