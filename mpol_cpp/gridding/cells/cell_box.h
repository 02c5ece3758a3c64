#pragma once

#include <algorithm>
#include <cstdint>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/cells/cell_kernels.h>

namespace mpol::gridding {

/// The cells around the origin of the uv plane among which all data lie, a square of even width. A key numbers them in packed
/// order, row * width + column; so keys increase as the indices into the whole packed plane do.
class CellBox {
 public:
  /// @param largest  |u| or |v| of the data, wavelengths, which fits the grid
  CellBox(const GridCoords& coords, double largest)
      : du_(coords.du()),
        npix_(coords.npix()),
        // The largest |cell| from the origin is that of `largest`, rounded; one more is beyond doubt.
        width_(std::min(npix_, 2 * (static_cast<std::int64_t>(largest / du_) + 3))) {}

  std::int64_t cells() const { return width_ * width_; }
  /// How coordinates in units of `scale` wavelengths become keys; those of the Hermitian partners if so wanted.
  CellRule rule(double scale, bool partner) const {
    return {
        scale,  du_, static_cast<std::int32_t>(npix_), static_cast<std::int32_t>(npix_ / 2), static_cast<std::int32_t>(width_),
        partner};
  }
  /// The flat index of a key's cell into the packed plane of npix^2 cells.
  std::int64_t packed_index(std::int64_t key) const { return in_plane(key / width_) * npix_ + in_plane(key % width_); }

 private:
  std::int64_t in_plane(std::int64_t index) const { return index < width_ / 2 ? index : index + npix_ - width_; }

  double du_;
  std::int64_t npix_, width_;
};

}  // namespace mpol::gridding
