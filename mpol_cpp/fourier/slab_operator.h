#pragma once

#include <memory>
#include <vector>

#include <mpol_cpp/distributed/row_slabs.h>
#include <mpol_cpp/fourier/normal_operator.h>

namespace mpol {

/// A NormalOperator of images in row slabs (RowSlabs): chi^2 = x^T T x - 2 b^T x + c, by real transforms along the rows that each
/// rank holds, an all-to-all, transforms along columns, and the same back. Each rank keeps its columns of the kernel and its rows
/// of the dirty vector: of a whole image of npix^2 pixels on n ranks 24 npix^2 / n bytes a channel, and a product takes some
/// 96 npix^2 / n for a while.
///
/// Two all-to-alls a product, in each of which a rank sends 16 nchan npix (npix + 1) (n - 1) / n^2 bytes.
class SlabOperator {
 public:
  /// @param whole  the same on all ranks (operator_of_ranks), of which only this rank's part is kept
  SlabOperator(const NormalOperator& whole, std::shared_ptr<Communicator> ranks);

  const GridCoords& coords() const { return coords_; }             ///< the grid of the whole image
  const RowSlabs& slabs() const { return slabs_; }                 ///< who holds which rows
  std::int64_t nchan() const { return nchan_; }                    ///< image channels
  std::int64_t nvis() const { return nvis_; }                      ///< visibilities behind it, summed over channels
  std::int64_t occupied_cells() const { return occupied_cells_; }  ///< of the whole grid, summed over channels

  /// This rank's rows of T x. Called by every rank.
  /// @param slab  (nchan, rows, npix) float64  @throws ShapeError for another shape or dtype; RankError
  Tensor apply(const Tensor& slab) const;
  /// This rank's part of chi^2, which sums over ranks to the whole, and its rows of the gradient. Called by every rank.
  /// @param slab      as of apply()
  /// @param gradient  same shape, overwritten
  double value_and_gradient(const Tensor& slab, Tensor& gradient) const;
  /// The same with chi^2 of each channel.
  std::vector<double> channel_values_and_gradient(const Tensor& slab, Tensor& gradient) const;

 private:
  GridCoords coords_;
  RowSlabs slabs_;
  std::int64_t nchan_, nvis_, occupied_cells_;
  Tensor kernel_;    // (nchan, own columns, 2 npix)
  Tensor dirty_;     // (nchan, rows, npix)
  Tensor constant_;  // (nchan), 0 but on the first rank
};

}  // namespace mpol
