#pragma once

#include <cstdint>
#include <string>

#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::detail {

/// Joins the states of ranks that fit other channels of one cube into that of one rank that fits them all, and back, so that any
/// number of ranks goes on from a checkpoint. What a tensor of a state holds follows from its shape and name:
///
///   (…, nchan, npix, npix)       images: side by side along channels
///   …curvatures, …_of_channels   numbers of each channel, (…, nchan): side by side
///   …losses, …regularizers       sums over channels: added; taken apart, the first rank has all and the others nothing
///   all else                     what all ranks know alike
class ChannelState {
 public:
  /// Called by every rank. @param nchan  channels of this rank
  ChannelState(Communicator& ranks, std::int64_t nchan, std::int64_t npix);

  std::int64_t nchan_of_all() const { return all_; }

  /// The state of all channels on the first rank, none on the others. Called by every rank.
  /// @throws RankError when the ranks hold states of other tensors
  NamedTensors gather(const NamedTensors& own) const;
  /// This rank's part of the state of all channels.
  NamedTensors part(const NamedTensors& all) const;

 private:
  /// How a tensor is divided; `channels` that it would have if it were of images.
  enum class Kind { images, per_channel, sum, common };
  Kind kind_of(const std::string& name, const torch::Tensor& tensor, std::int64_t channels) const;

  Communicator& ranks_;
  std::int64_t own_, npix_, begin_ = 0, all_ = 0;
};

}  // namespace mpol::detail
