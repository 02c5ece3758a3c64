#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// Sends to each rank what is for it, and gives what the others have for this one: an all-to-all of rows (first dimension), whose
/// numbers may differ and be 0. Each rank is sent to by gather() in turn: size() exchanges of size() - 1 messages, each after one
/// all-reduce of the numbers of rows.
/// @param parts  for each rank, contiguous, on a device that the ranks take; those for one rank of the same shape but for rows
/// @return       the rows for this rank in the order of ranks
/// @throws ShapeError unless there is one part for each rank; RankError when another rank fails
Tensor all_to_all(Communicator& ranks, const std::vector<Tensor>& parts);

/// An image in slabs: each rank holds its share_of() of the rows of images (nchan, npix, columns), perhaps none.
///
/// All functions that exchange are called by every rank.
class RowSlabs {
 public:
  /// @param npix  rows of the whole image  @throws ValueError unless npix > 0
  RowSlabs(std::int64_t npix, std::shared_ptr<Communicator> ranks);

  std::int64_t npix() const { return npix_; }             ///< rows of the whole image
  Communicator& ranks() const { return *ranks_; }         ///< who hold the slabs
  Share rows() const { return rows_of(ranks_->rank()); }  ///< of this rank
  Share rows_of(std::int64_t rank) const;                 ///< of another rank
  /// The rows of a rank with those of its neighbours that are at most `halo` away and within the image; none for a rank without
  /// rows. A halo may reach over several ranks.
  Share rows_with_halo(std::int64_t rank, std::int64_t halo) const;

  /// This rank's rows of an image that it has whole, contiguous. @param image  (nchan, npix, columns)
  Tensor slab_of(const Tensor& image) const;
  /// This rank's rows of an image that the first rank alone has. @param image  (nchan, npix, columns), looked at on the first
  /// rank alone  @param like  (nchan, rows, columns), what is wanted, whose numbers are not looked at
  Tensor scatter(const Tensor& image, const Tensor& like) const;
  /// The whole image on the first rank; undefined elsewhere. @param slab  (nchan, rows, columns)
  Tensor gather(const Tensor& slab) const;
  /// The slab between rows of the neighbours. @param slab  (nchan, rows, columns)
  /// @return  (nchan, rows_with_halo, columns)
  Tensor with_halo(const Tensor& slab, std::int64_t halo) const;
  /// The adjoint of with_halo(): what ranks have found for rows of their halos is added to those rows, in the order of ranks.
  /// @param slab  (nchan, rows_with_halo, columns)
  /// @return      (nchan, rows, columns)
  Tensor add_halo(const Tensor& slab, std::int64_t halo) const;

  /// All rows of this rank's share of the columns, (nchan, npix, own columns). @param slab  (nchan, rows, columns)
  Tensor to_columns(const Tensor& slab) const;
  /// Its inverse. @param columns  (nchan, npix, own columns)  @return  (nchan, rows, columns of all ranks)
  Tensor to_rows(const Tensor& columns) const;

 private:
  std::int64_t npix_;
  std::shared_ptr<Communicator> ranks_;
};

}  // namespace mpol
