#pragma once

#include <cstddef>
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

  /// Multiplies numbers of samples by their density weights.
  /// @param u, v     (n) wavelengths of samples that lie in these cells, float64, contiguous
  /// @param numbers  (n) float64, contiguous
  void multiply(const Tensor& u, const Tensor& v, const Tensor& numbers) const;

 private:
  double at(std::size_t cell) const;

  GridCoords coords_;
  std::int64_t first_of_plane_;  // the channel's first cell in the cube
  std::span<const std::int64_t> cells_;
  std::span<const double> density_;
  std::vector<double> plane_;            // of all cells of the channel, where they are not too many to be there
  std::vector<std::int64_t> row_begin_;  // (npix + 1) among the cells, where they are
};

}  // namespace mpol::gridding
