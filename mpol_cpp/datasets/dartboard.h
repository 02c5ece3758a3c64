#pragma once

#include <cstdint>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>

namespace mpol {

/// Options of a Dartboard.
struct DartboardOptions {
  /// Edges of the rings in wavelengths, from 0, increasing; empty: loglinspace(0, coords.q_max(), 8, 5).
  TORCH_ARG(std::vector<double>, q_edges);
  /// Edges of the sectors in radian, from 0 to pi, increasing; empty: 8 of equal width.
  TORCH_ARG(std::vector<double>, phi_edges);
};

/// Rings and sectors over the uv plane, by which cells are kept together when data are split.
///
/// A cell with v < 0 counts with its Hermitian partner: phi = atan2(v, u) is folded onto [0, pi). Bins are half open,
/// so every uv cell of the default dartboard lies in exactly one bin. (MPoL's loses those at v < 0.) Which side of an
/// edge a cell lies on is decided from its integer coordinates: it has no rounding that differs between partners.
class Dartboard {
 public:
  /// @throws ValueError for edges that do not increase or have other ends
  explicit Dartboard(GridCoords coords, DartboardOptions options = {});

  const GridCoords& coords() const { return coords_; }                                        ///< the grid whose cells it sorts
  const std::vector<double>& q_edges() const { return q_edges_; }                             ///< wavelengths
  const std::vector<double>& phi_edges() const { return phi_edges_; }                         ///< radian
  std::int64_t q_bins() const { return static_cast<std::int64_t>(q_edges_.size()) - 1; }      ///< number of rings
  std::int64_t phi_bins() const { return static_cast<std::int64_t>(phi_edges_.size()) - 1; }  ///< number of sectors

  /// Bins of uv cells, (n) int64: q bin times phi_bins() + phi bin; -1 beyond the last ring.
  /// @param cells  (n) int64, flat index into a packed (nchan, npix, npix) cube, on any device; the result is on the CPU
  Tensor bins_of(const Tensor& cells) const;

  /// How many uv cells that hold data in any channel each bin has, (q_bins, phi_bins) int64 on the CPU.
  /// @throws ShapeError when the dataset has another grid
  Tensor histogram(const GriddedDataset& dataset) const;

 private:
  std::int64_t bin_of(std::int64_t packed_row, std::int64_t packed_column) const;

  GridCoords coords_;
  std::vector<double> q_edges_, phi_edges_;
};

}  // namespace mpol
