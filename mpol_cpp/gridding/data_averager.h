#pragma once

#include <cstdint>
#include <optional>

#include <torch/arg.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/gridding/cells/scatter.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// What is done when the scatter of the data inside cells does not match their weights.
enum class ScatterCheck {
  error,  ///< to_dataset() throws
  warn,   ///< a line in the log
  off     ///< nothing
};

/// Options of a DataAverager.
struct DataAveragerOptions {
  /// Also grid the Hermitian partner of every sample (MPoL v0.1), doubling the cells and the samples of the scatter.
  TORCH_ARG(bool, hermitian_pairs) = false;
  /// What to_dataset() does with weights that look wrong.
  TORCH_ARG(ScatterCheck, scatter_check) = ScatterCheck::error;
  /// Keep what cell_statistics() returns, which then needs no pass of its own.
  TORCH_ARG(bool, keep_statistics) = false;
  /// Which data channels feed which image channel; empty: image channel c <- data channel c.
  TORCH_ARG(std::optional<ChannelMap>, channel_map) = std::nullopt;
};

/// Averages loose visibilities in uv cells: V_c = sum w V / sum w, W_c = sum w, over the occupied cells only.
///
/// One pass over the data gives the sums and the scatter, in float64; the result is the same bit for bit for any thread
/// count. Memory above the data and the result stays within 64 MiB + 10 % of the data at any npix: where the occupied
/// cells need more, the uv plane is gone through in strips with a pass each.
/// @throws DataError when a baseline lies outside the grid; ValueError for a channel map that names channels that are
///         not there, or npix above 65536
class DataAverager {
 public:
  /// Averages at once; see above for what it throws.
  DataAverager(const GridCoords& coords, const Visibilities& visibilities, DataAveragerOptions options = {});

  /// The gridded data in float64 (complex128); `->to(torch::kFloat32)` for single precision. With
  /// ScatterCheck::warn one warning goes to the log where the scatter is too large.
  /// @throws DataError when the scatter check fails and is an error
  GriddedDataset to_dataset() const;

  /// Median over cells with several samples of the scatter of their residuals in units of 1/sqrt(w).
  const Scatter& scatter() const { return scatter_; }

  const GridCoords& coords() const { return coords_; }         ///< the grid of the cells
  std::int64_t nchan() const { return channel_map_.nchan(); }  ///< image channels
  std::int64_t ncells() const { return cells_.size(0); }       ///< occupied cells, summed over image channels
  /// Loose samples that were averaged, summed over image channels (without Hermitian partners).
  std::int64_t nvis() const;

  /// Scatter and number of samples of every occupied cell; one more pass over the data, unless they were kept.
  CellStatistics cell_statistics() const;

 private:
  GridCoords coords_;
  Visibilities visibilities_;  // shares the storage of what was given
  DataAveragerOptions options_;
  ChannelMap channel_map_;
  Scatter scatter_;
  Tensor cells_, averages_, weights_;
  std::optional<CellStatistics> statistics_;
};

}  // namespace mpol
