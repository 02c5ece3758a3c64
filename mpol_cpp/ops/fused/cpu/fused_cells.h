#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// Occupied cells of one channel's half plane by column: what the pass over columns reads. Cells that fell on the same
/// place (a cell and the Hermitian partner of another) are one, with their weighted mean:
///   sum_i w_i |V - d_i|^2 = w |V - d|^2 + constant.
template <typename T>
struct ColumnCells {
  std::vector<std::int32_t> columns;  // of the half plane, ascending: those that have data
  std::vector<std::int32_t> begin;    // columns.size() + 1: where the cells of each column begin
  std::vector<std::int32_t> row;      // ascending within a column
  std::vector<T> weight, real, imag;  // Jy^-2, Jy, Jy
  double constant = 0;                // of chi^2
};

/// @param cells    (ncells) int64, flat indices into the half plane (nchan, npix, npix/2 + 1)
/// @param data     (ncells) complex, Jy
/// @param weights  (ncells) real, Jy^-2
/// @return         one entry per channel
/// @throws ValueError for an index outside the half plane
template <typename T>
std::vector<ColumnCells<T>> column_cells(const Tensor& cells, const Tensor& data, const Tensor& weights, std::int64_t nchan,
                                         std::int64_t npix);

/// The same with all `half` columns of the half plane, those without data empty.
template <typename T>
ColumnCells<T> with_every_column(const ColumnCells<T>& cells, std::int64_t half);

/// The cells of one channel by panel of kept columns (LineTransforms), in the order in which a transformed panel lies in memory.
template <typename T>
struct PanelCells {
  std::vector<std::int32_t> columns;  // that are kept, ascending: panel p holds those from p * LineTransforms::batch on
  std::vector<std::int32_t> begin;    // one more than panels: where the cells of each begin
  std::vector<std::int32_t> place;    // of the real part within the panel, ascending
  std::vector<T> weight, real, imag;  // Jy^-2, Jy, Jy
  double constant = 0;                // of chi^2
};

/// @param slots  the row of each frequency of a transformed panel
template <typename T>
PanelCells<T> panel_cells(const ColumnCells<T>& cells, const std::vector<std::int32_t>& slots);

}  // namespace mpol::ops
