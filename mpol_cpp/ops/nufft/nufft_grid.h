#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/nufft/nufft_points.h>
#include <mpol_cpp/ops/fft/padded_rows.h>

namespace mpol::ops {

/// The fine uv grid of a nonuniform transform, twice as fine as the image's: from an image divided by the window's transform
/// to the cells that footprints of points reach, and the adjoint of that. Cells are columns of constant u, `distance`
/// complex numbers apart, from u = -guard on; each goes from v = -last_v to last_v.
template <typename T>
class NufftGrid {
 public:
  using Complex = std::complex<T>;

  /// The pixels of the image that is transformed: an image smaller than the window's support is padded, so that footprints
  /// reach over the edge of the plane once and no further.
  static constexpr std::int64_t padded(std::int64_t npix) { return npix < least_npix ? least_npix : npix; }

  /// @param npix    of the images, even
  /// @param extent  of points whose fine grid has 2 padded(npix) cells along each axis
  NufftGrid(std::int64_t npix, int width, const NufftExtent& extent);

  const NufftTile& tile() const { return tile_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t distance() const { return distance_; }
  std::int64_t size() const { return columns_ * distance_; }  ///< complex cells
  /// The first real of a tile in an array of cells.
  T* corner(Complex* cells, const NufftTileTasks& tile) const {
    const std::int64_t column = std::int64_t{tile.u} * NufftTile::cells, row = std::int64_t{tile.v} * NufftTile::cells;
    return reinterpret_cast<T*>(cells + column * distance_ + row);
  }

  /// @param image  (npix, npix), contiguous, sky orientation
  void from_image(const T* image, double scale, Complex* cells);
  void to_image(Complex* cells, double scale, T* image, Accumulate accumulate);

  std::int64_t memory_bytes() const;

 private:
  std::int64_t guard() const { return -extent_.first_u; }
  /// Cells of a column that hold something.
  std::int64_t rows() const { return 2 * extent_.last_v + 1; }
  std::int64_t panels() const { return LineTransforms<T>::panels(kept_); }
  T* column(Complex* cells, std::int64_t j) const { return reinterpret_cast<T*>(cells + (j + guard()) * distance_); }

  void whole_from_image(const T* image, double scale, Complex* cells);
  void whole_to_image(Complex* cells, double scale, T* image, Accumulate accumulate);
  void prepare();
  std::vector<T> row_factors(double scale) const;
  void panel_from_image(std::int64_t panel, std::int64_t worker, Complex* cells) const;
  void panel_to_image(std::int64_t panel, std::int64_t worker, Complex* cells) const;
  void fold_column(std::int64_t j, Complex* cells) const;

  static constexpr std::int64_t batch = PaddedRows<T>::batch;
  static constexpr std::int64_t least_npix = 8;  // half of the widest window

  std::int64_t image_npix_, npix_;  // npix_: padded
  NufftTile tile_;
  NufftExtent extent_;
  PaddedRows<T> padded_rows_;
  std::int64_t kept_, distance_, columns_;
  std::vector<double> correction_;  // 1/transform of the window at pixels n = -npix/2, ...
  std::vector<T> column_factors_, reversed_factors_;
  std::vector<std::int32_t> slots_;  // of v = -last_v ... last_v in a transformed panel
  std::vector<typename PaddedRows<T>::Scratch> scratch_;
  AlignedArray<T> half_plane_;
};

}  // namespace mpol::ops
