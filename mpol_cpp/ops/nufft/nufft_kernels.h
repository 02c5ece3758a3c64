#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

/// What the nonuniform transform does to the points of one tile of its fine uv grid, in one table for each instruction
/// set and width of the window.
///
/// A point takes the cells of its footprint, width x width, first cell (cu, cv) counted from the tile's first one, with
/// the weights window(x, r) window(y, s) of its offset (x, y) in [-1/2, 1/2]. Tiles are arrays of complex cells, v
/// fastest, `NufftTile::distance` reals from one u to the next.
namespace mpol::ops {

inline constexpr int nufft_max_width = 15;
/// Images that one visit of a tile can take: the window is evaluated once for all of them.
inline constexpr int nufft_max_images = 4;

/// The extent of a tile with the cells that the footprints of its points reach.
struct NufftTile {
  static constexpr int cells = 16;  ///< first cells of footprints, along each axis

  int columns;   ///< along u: cells + width - 1
  int rows;      ///< along v, likewise
  int distance;  ///< reals from column to column; whole vectors may be read and written at any footprint

  /// @param element_size  bytes of a real
  static constexpr NufftTile of(int width, int element_size) {
    const int vector_cells = 32 / element_size;  // complex numbers in the longest vector
    const int reach = cells - 1 + (width + vector_cells - 1) / vector_cells * vector_cells;
    // Columns start in different cache sets.
    return {cells + width - 1, cells + width - 1, 2 * ((reach + 7) / 8 * 8 + (element_size == 4 ? 0 : 4))};
  }
  int size() const { return columns * distance; }  ///< reals
};

/// The window as polynomials of the offset, for each cell r of the footprint; zero beyond its width.
template <typename T>
struct NufftTables {
  static constexpr int powers = nufft_max_width + 5, degrees = 16, cells = 16;

  alignas(64) T power[powers][cells];                 ///< factors of x^k
  alignas(64) T power_twice[powers][2 * cells];       ///< each twice, for rows of complex numbers
  alignas(64) T chebyshev[degrees][cells];            ///< factors of T_q(2x)
  alignas(64) T chebyshev_twice[degrees][2 * cells];  ///< each twice
  alignas(64) T by_cell_twice[cells][2 * degrees];    ///< chebyshev[q][r] at [r][2q] and [r][2q + 1]
};

/// Degree of the polynomials that `NufftTables::power` holds.
template <typename T>
constexpr int nufft_power_degree(int width) {
  return sizeof(T) == 4 ? width + 3 : width + 4;
}
/// Total degree of the polynomials in (x, y) that stand for a cell with many points.
constexpr int nufft_dense_degree(int width) { return width < 14 ? width + 1 : width; }

/// Points whose footprints start at the same cell.
struct NufftRun {
  std::int64_t begin;
  std::int32_t count;
  std::int32_t cell;  ///< first real of the footprint in the tile
};

/// Points of one tile: those of [begin, end) one by one, then whole runs.
template <typename T>
struct NufftTilePoints {
  const T *x, *y;             ///< offsets
  const std::uint16_t* cell;  ///< first real of the footprint in the tile
  std::int64_t begin, end;
  const NufftRun* runs;
  std::int64_t run_count;
  std::int64_t first;  ///< of all of these; they follow each other up to `last`
  std::int64_t last;
};

/// The share of one image in a visit of a tile. Values are indexed from the first of the points on; their arrays have room
/// for a vector beyond their end.
template <typename T>
struct NufftImage {
  const T* cells = nullptr;                                     ///< the tile that is read
  T* sums = nullptr;                                            ///< the tile that is added to
  const T *real = nullptr, *imag = nullptr, *weight = nullptr;  ///< values at the points
  T *model_real = nullptr, *model_imag = nullptr;               ///< what `degrid` finds there
  double chi_squared = 0;                                       ///< what `fused` finds
};

/// Kernels that take up to nufft_max_images images at once.
template <typename T>
struct NufftKernels {
  /// Values at the points of what lies in the cells.
  void (*degrid)(const NufftTables<T>&, const NufftTilePoints<T>&, NufftImage<T>* images, int count);
  /// Adds the values at the points to the sums.
  void (*grid)(const NufftTables<T>&, const NufftTilePoints<T>&, NufftImage<T>* images, int count);
  /// Adds w (m - d) to the sums, with model values m from the cells and data d; chi_squared becomes the sum of w |m - d|^2.
  void (*fused)(const NufftTables<T>&, const NufftTilePoints<T>&, NufftImage<T>* images, int count);
  /// Adds the sums of a tile to cells whose columns lie `distance` reals apart; up to 2 * NufftTile::cells rows are touched.
  void (*add_tile)(const T* sums, T* cells, std::int64_t distance);
};

/// @throws ValueError for a width that is not compiled for this dtype
template <typename T>
NufftKernels<T> nufft_kernels(Isa isa, int width);

}  // namespace mpol::ops
