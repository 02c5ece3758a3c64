#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/labeled_state.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/device/saved_count.h>

namespace mpol {

/// Cell-averaged visibilities: the occupied uv cells of every image channel, in the order channel -> v -> u of the
/// packed cube (the order of MPoL's `vis_indexed`).
///
/// State dict (all move with `.to(device)`; the first two follow `.to(dtype)`):
///   visibilities  (ncells) complex, Jy          cell averages
///   weights       (ncells) real, Jy^-2          cell sums
///   cells         (ncells) int64                flat index into the packed (nchan, npix, npix) cube, increasing
///   nvis          () int64                      loose samples behind them, 0 when unknown
class GriddedDatasetImpl : public Module<GriddedDatasetImpl>, public LabeledState {
 public:
  /// @throws ShapeError when lengths differ; DataError when an index is outside the cube or not increasing
  GriddedDatasetImpl(GridCoords coords, std::int64_t nchan, Tensor cells, Tensor visibilities, Tensor weights);

  void reset() override;

  const GridCoords& coords() const { return coords_; }    ///< the grid of the cells
  std::int64_t nchan() const { return nchan_; }           ///< image channels
  std::int64_t ncells() const { return cells_.size(0); }  ///< occupied cells, summed over channels

  const Tensor& cells() const { return cells_; }                ///< (ncells) int64, as in the state dict
  const Tensor& visibilities() const { return visibilities_; }  ///< (ncells) complex, Jy
  const Tensor& weights() const { return weights_; }            ///< (ncells) real, Jy^-2

  /// Loose samples that were averaged, summed over channels (0 when unknown).
  std::int64_t nvis() const { return nvis_.value(); }
  void set_nvis(std::int64_t nvis) { nvis_.set(nvis); }  ///< 0: unknown

  /// Dense packed cubes (nchan, npix, npix), zero (false) in empty cells.
  Tensor mask() const;
  Tensor packed_visibilities() const;  ///< averages, complex, Jy
  Tensor packed_weights() const;       ///< sums, real, Jy^-2

  /// "cell_size", "npix" and "nchan".
  std::map<std::string, std::string> state_labels() const override;

  /// The cells of this dataset taken from a packed cube of visibilities, complex (…, nchan, npix, npix) -> (…, ncells).
  /// @throws ShapeError for another shape or a real cube; DeviceError
  Tensor at_cells(const Tensor& packed_cube) const;

  /// The dataset restricted to cells where `keep` (bool, (ncells)) is true.
  std::shared_ptr<GriddedDatasetImpl> subset(const Tensor& keep) const;

 private:
  Tensor dense(const Tensor& values) const;

  GridCoords coords_;
  std::int64_t nchan_;
  detail::SavedCount nvis_;
  Tensor cells_, visibilities_, weights_;
};

TORCH_MODULE(GriddedDataset);

}  // namespace mpol
