#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// Ranks that hold the channels of one cube, each some that follow on each other, in the order of ranks: what a rank sees of
/// those before and after its own.
///
/// All functions but the questions are called by every rank, with cubes that have one channel at least and agree but for their
/// number; tensors may be on any device. @throws RankError when another rank has failed or does not come
class ChannelNeighbors {
 public:
  /// @param ranks  all of which hold channels
  explicit ChannelNeighbors(std::shared_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}

  bool has_before() const { return ranks_->rank() > 0; }                  ///< whether there are channels before these
  bool has_after() const { return ranks_->rank() + 1 < ranks_->size(); }  ///< whether there are channels after these
  std::int64_t ranks() const { return ranks_->size(); }                   ///< how many there are
  /// The number of the first of this rank's channels among all. @param nchan  of this rank
  std::int64_t channels_before(std::int64_t nchan) const;

  /// What two neighbors hand over; undefined where there is none.
  struct Handed {
    Tensor before;  ///< by the rank before
    Tensor after;   ///< by the rank after
  };
  /// Hands one tensor to the rank before and another one to the rank after, which may be of other shapes, and gets what they
  /// hand over. Tensors are not looked at where there is no such rank.
  Handed exchange(const Tensor& to_before, const Tensor& to_after) const;

  /// A cube with channels of other ranks around it.
  struct Surrounded {
    Tensor cube;          ///< (…, before + nchan + after, npix, npix), without a graph for theirs
    std::int64_t before;  ///< how many of them lie before its own, at most as many as asked for
    std::int64_t after;   ///< the same behind
  };
  /// @param cube  (…, nchan, npix, npix)  @param reach  how far others are looked at, > 0
  Surrounded with_neighbors(const Tensor& cube, std::int64_t reach) const;

  /// Sums over ranks, in place.
  void sum(Tensor& numbers) const;
  void sum(std::vector<double>& numbers) const { ranks_->sum(numbers); }  ///< of the same length everywhere
  /// The largest ones of all ranks. @param numbers  of the same length everywhere
  std::vector<double> largest(const std::vector<double>& numbers) const;

 private:
  std::shared_ptr<Communicator> ranks_;
};

}  // namespace mpol
