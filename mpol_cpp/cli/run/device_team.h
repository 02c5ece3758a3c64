#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/sharing/channel_part.h>
#include <mpol_cpp/cli/run/part_errors.h>
#include <mpol_cpp/cli/run/part_fit.h>
#include <mpol_cpp/cli/sharing/sharding.h>
#include <mpol_cpp/distributed/device_group.h>

namespace mpol::cli {

/// Whether devices share the folds of a cross-validation: those of held-out data, unless --shard none is given.
bool devices_share_folds(const ImageOptions& options);

/// The devices of --device that make one run of `mpol image` together.
class DeviceTeam {
 public:
  /// Measures how fast the devices are, unless they are of one kind or --deterministic wants the same shares each time.
  /// @param nchan  of the image
  DeviceTeam(const ImageOptions& options, const std::vector<torch::Device>& devices, std::int64_t npix, std::int64_t nchan);

  DeviceGroup& group() { return *group_; }
  /// What one device alone does is done by the fastest.
  torch::Device first() const { return group_->devices().front(); }
  /// The most channels whose kernels are in one memory. @param nchan  that the devices share
  std::int64_t most_channels(std::int64_t nchan) const;
  /// One line for people: who holds what.
  /// @param samples  visibilities of a channel
  std::string words(const Sharding& sharding, std::int64_t samples) const;

  /// Gives each device the data and the likelihood of its channels. @return what the fit of all is made of
  /// @param channels  of the cube  @param select  gives the data of some of them, from the first on
  FitSize hold_channels(const Share& channels, const std::function<Visibilities(const Share&)>& select, const GridCoords& coords);
  bool holds_channels() const { return !parts_.empty(); }
  /// The likelihood of visibilities of which each device holds a share.
  std::shared_ptr<Likelihood> share_visibilities(const FitData& data);
  /// Fits the channels.
  FittedPart fit(const FitPlan& plan);
  /// Samples the errors of the channels, which are fitted. @param beams  as errors_of_part() takes them
  PartErrors errors(const std::vector<Beam>& beams);

 private:
  PartToFit part_of(std::size_t rank, torch::Device device) const;

  const ImageOptions& options_;
  std::int64_t nchan_;      // of the image
  std::int64_t first_ = 0;  // channel that is held
  std::shared_ptr<DeviceGroup> group_;
  std::vector<ChannelPart> parts_;                        // of each rank
  std::vector<std::shared_ptr<Likelihood>> likelihoods_;  // empty where a rank has no channel
  std::vector<FittedPart> fitted_;                        // of each rank, without the image of all
};

}  // namespace mpol::cli
