#pragma once

#include <cstdint>

#include <mpol_cpp/ops/isa.h>

namespace mpol::gridding {

struct CellTable;

/// Samples [0, count) of one block, in the dtypes they are held in. Weights are real, data interleaved complex.
struct SampleBlock {
  const void* weights;
  const void* data;
  bool weights_are_double;
  bool data_are_double;
  double imag_sign;  // -1 for the Hermitian partners of the samples
};

/// How u and v become keys (CellKeys).
struct CellRule {
  double du;
  std::int32_t npix;
  int row_shift;
  bool partner;  // the cell of the Hermitian partner, N - i, instead of the cell i
};

/// The inner loops of gridding, compiled for one instruction set.
struct CellKernels {
  /// keys[i] of the cell of (u[i], v[i]): GridCoords::uv_cell's rule, then packed order.
  void (*locate)(const double* u, const double* v, std::int64_t count, const CellRule& rule, std::uint32_t* keys);
  /// Indices of the samples whose row belongs to `owner`, increasing; returns how many. count <= 65536.
  std::int64_t (*select)(const std::uint32_t* keys, std::int64_t count, int row_shift, const std::uint8_t* owner_of_row,
                         std::uint8_t owner, std::uint16_t* picks);
  /// Adds the picked samples (all of them where picks is null) to their cells, in order; stops when the table is full.
  void (*accumulate)(CellTable& table, const std::uint32_t* keys, const std::uint16_t* picks, std::int64_t count,
                     const SampleBlock& block);
};

CellKernels cell_kernels(Isa isa);

}  // namespace mpol::gridding
