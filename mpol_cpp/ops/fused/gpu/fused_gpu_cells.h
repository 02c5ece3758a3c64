#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// Occupied cells, for WeighBody row by row: each place of the half plane knows its cell. In columns 0 and npix/2, which
/// hold both of each Hermitian pair, a cell stands half at its own place and half, conjugated, at its partner's.
struct GpuCells {
  Tensor cell_of;             // (nchan, npix, npix/2 + 1) int32, -1 where there are no data; several of them joined
  Tensor weight, real, imag;  // (n), Jy^-2, Jy, Jy; in the order of their places
  Tensor constant;            // (1) float64, of chi^2; (problems) joined
  Tensor channel_constants;   // (nchan) float64, whose sum it is; those of all problems joined
};

/// @param cells    (ncells) int64, flat indices into the half plane (nchan, npix, npix/2 + 1)
/// @param data     (ncells) complex, Jy
/// @param weights  (ncells) real, Jy^-2
/// @param dtype    float32 or float64, of the result, which is on the CPU
/// @throws ValueError for an index outside the half plane, or for more cells than an int32 counts
GpuCells gpu_cells(const Tensor& cells, const Tensor& data, const Tensor& weights, std::int64_t nchan, std::int64_t npix,
                   torch::Dtype dtype);

/// The cells of several problems, one after another. @throws ValueError for more of them than an int32 counts
GpuCells joined_cells(const std::vector<GpuCells>& problems);

/// The columns of half planes that hold data, and cells as WeighColumnsBody reads them: column by column.
struct GpuColumns {
  Tensor column;   // (count) int32, ascending
  Tensor number;   // (npix/2 + 1) int32: which of them a column is, -1 for none
  GpuCells cells;  // cell_of: (nchan, count, npix); in the order of these places
};

/// @param cells  on the CPU, as gpu_cells and joined_cells give them
/// @param all    keep every column, with data or not
GpuColumns columns_of(const GpuCells& cells, bool all);

/// inverse_power (npix, npix/2 + 1) as the gradient's Hermitian half plane needs it: columns 0 and npix/2 are even.
Tensor even_inverse_power(const Tensor& inverse_power);

}  // namespace mpol::ops
