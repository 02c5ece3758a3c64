#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <mpol_cpp/datasets/visibility_sampler.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// The batches of one epoch of a sampler, each of which is taken out of the visibilities when its turn comes:
///
///   for (const auto& batch : DeviceIterator(VisibilityBatches(visibilities, sampler, epoch), device)) { … }
class VisibilityBatches {
 public:
  /// @param visibilities  copies share their arrays: nothing is copied here
  /// @param sampler       of these visibilities' baselines
  /// @param epoch         number of the epoch, which decides the batches
  VisibilityBatches(Visibilities visibilities, const VisibilitySampler& sampler, std::int64_t epoch);

  /// Stands on one batch.
  class Position {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Visibilities;
    using difference_type = std::ptrdiff_t;
    using pointer = const Visibilities*;
    using reference = Visibilities;

    /// Stands on a batch by its number, from 0.
    Position(const VisibilityBatches& owner, std::size_t batch) : owner_(&owner), batch_(batch) {}
    Visibilities operator*() const { return owner_->batch(batch_); }  ///< the batch, chosen anew each time
    /// Goes on to the next one.
    Position& operator++() {
      ++batch_;
      return *this;
    }
    void operator++(int) { ++batch_; }                                               ///< as the other one
    bool operator==(const Position& other) const { return batch_ == other.batch_; }  ///< whether both stand on the same one

   private:
    const VisibilityBatches* owner_;
    std::size_t batch_;
  };

  Position begin() const { return {*this, 0}; }              ///< the first batch
  Position end() const { return {*this, samples_.size()}; }  ///< behind the last one
  std::size_t size() const { return samples_.size(); }       ///< batches of the epoch
  Visibilities batch(std::size_t number) const;              ///< one of them, from 0

 private:
  Visibilities visibilities_;
  std::vector<Tensor> samples_;  // indices of each batch
};

}  // namespace mpol
