#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/sharing/sharding.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/train/trainer.h>

namespace mpol::cli {

/// Channels of a cube that are fitted one group after another, each with likelihoods and a state of its own, where those of all
/// do not fit into memory together.
class ChannelGroups {
 public:
  /// One group of all.
  explicit ChannelGroups(std::int64_t nchan = 1) : ChannelGroups(nchan, nchan, {}) {}
  /// As few groups as hold at most `at_once` channels each, and as alike in size as can be.
  /// @param reason  for their number, in words
  ChannelGroups(std::int64_t nchan, std::int64_t at_once, std::string reason);

  bool are_several() const { return groups_.size() > 1; }
  const std::vector<Share>& all() const { return groups_; }
  std::int64_t nchan() const { return groups_.back().end; }              ///< of all groups
  std::int64_t at_once() const { return at_once_; }                      ///< as it was asked for or found
  std::int64_t most_channels() const { return groups_.front().size(); }  ///< of a group
  const std::string& reason() const { return reason_; }
  std::string words() const;                       ///< one line for people
  std::string words_of(const Share& group) const;  ///< "channels 4 to 7 of 12"

  /// The folder in which the fit of a group keeps what it goes on from: of the first that of the run.
  std::filesystem::path state_of(const Share& group, const std::filesystem::path& state) const;

 private:
  std::int64_t at_once_;
  std::string reason_;
  std::vector<Share> groups_;
};

/// What the choice of groups depends on beside the options.
struct GroupingCase {
  std::int64_t nchan;                            ///< of the image
  Shard shard = Shard::channels;                 ///< of ranks or devices; of one alone channels
  std::optional<std::int64_t> before = {};       ///< how many the run to resume has at a time
  std::function<bool(std::int64_t nchan)> fits;  ///< whether so many channels fit into memory
};

/// All channels together where they fit into memory or cannot be fitted apart; else as many at a time as fit, or as
/// --channels-at-once says.
/// @throws UsageError where that is asked for and cannot be, or is not what the run to resume has
ChannelGroups choose_channel_groups(const ImageOptions& options, const GroupingCase& of);

/// What the fits of all groups came to, as one: losses are sums over groups, of one that has ended its last; epochs are those of
/// the group that took most.
class GroupedResult {
 public:
  void add(TrainResult next) { groups_.push_back(std::move(next)); }
  TrainResult whole() const;
  std::int64_t newest_epochs() const { return groups_.back().epochs; }  ///< of the group that was added last

 private:
  std::vector<TrainResult> groups_;
};

}  // namespace mpol::cli
