#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol::gridding {

using torch::Tensor;

/// The density weights of samples of one image channel: each has that of its cell.
class SampleDensity {
 public:
  /// @param cells    flat indices into a packed cube of channels of npix^2 cells, increasing, all of one channel; they and
  ///                 the densities must outlive this
  /// @param density  of each cell
  SampleDensity(const GridCoords& coords, std::span<const std::int64_t> cells, std::span<const double> density);

  /// Multiplies the values of samples by their weights.
  /// @param u, v    (n) wavelengths of samples that lie in these cells, float64, contiguous
  /// @param values  (n) complex128, contiguous
  void multiply(const Tensor& u, const Tensor& v, const Tensor& values) const;

 private:
  GridCoords coords_;
  std::int64_t first_of_plane_;  // the channel's first cell in the cube
  std::span<const std::int64_t> cells_;
  std::span<const double> density_;
  std::vector<std::int64_t> row_begin_;  // (npix + 1) among the cells
};

}  // namespace mpol::gridding
