#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/cells/scatter.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::gridding {

/// Stands in for the data of a run of samples: (u, v in wavelengths, data) -> complex128 of the same length.
using DataTransform = std::function<Tensor(const Tensor& u, const Tensor& v, const Tensor& data)>;

struct CellSumOptions {
  /// Every sample also counts, conjugated, in the cell of its Hermitian partner.
  bool hermitian_pairs = false;
  /// Keep samples, real and imag of each cell too.
  bool cell_statistics = false;
  DataTransform transform;
  /// Bytes that the tables of occupied cells may take; by default what the memory promise leaves them.
  std::optional<std::int64_t> table_bytes;
};

/// Occupied cells in increasing order of the flat index into the packed (nchan, npix, npix) cube.
struct CellSums {
  Tensor cells;     ///< (ncells) int64
  Tensor averages;  ///< (ncells) complex128, sum w V / sum w
  Tensor weights;   ///< (ncells) float64, sum w
  Scatter scatter;
  Tensor samples;     ///< (ncells) int64, only with cell_statistics
  Tensor real, imag;  ///< (ncells) float64, only with cell_statistics: see CellStatistics
};

/// Sums the loose samples of each image channel in uv cells, in one pass where memory allows.
///
/// Each cell is summed by one thread in the order of the data, so the result is the same bit for bit for any number of
/// threads and of strips. Every step is bounded in memory: see DataAverager.
/// @throws DataError when a baseline lies outside the grid; ValueError for a channel that is not there, or npix > 65536
CellSums sum_cells(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channel_map,
                   const CellSumOptions& options = {});

}  // namespace mpol::gridding
