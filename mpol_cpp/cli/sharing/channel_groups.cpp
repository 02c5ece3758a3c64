#include <mpol_cpp/cli/sharing/channel_groups.h>

#include <algorithm>
#include <utility>

#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

/// Why a cube cannot be fitted in groups of channels; empty where it can.
std::string obstacle_to_groups(const ImageOptions& options, const GroupingCase& of) {
  if (of.shard != Shard::channels)
    return fmt::format("--shard {} is for all channels together", choice_name(std::optional(of.shard), shard_choices));
  if (!options.regularizers.searched.empty()) return "a search of weights makes likelihoods of all channels";
  if (!options.fit_blocks.empty()) return "--fit-blocks is for all channels together";
  if (!options.points.empty()) return "--points is for all channels together";
  if (const auto term = joining_term(options); !term.empty()) return fmt::format("{} joins channels", term);
  return obstacle_to_channels(options, of.nchan);
}

/// The most channels that fit into memory; 1 where none do.
std::int64_t most_that_fit(const GroupingCase& of) {
  std::int64_t fits = 1, too_many = of.nchan;
  while (too_many - fits > 1) {
    const auto middle = fits + (too_many - fits) / 2;
    (of.fits(middle) ? fits : too_many) = middle;
  }
  return fits;
}

/// How a fit of several groups ended: as the first that did not reach its end, else with its epochs if one of them did.
StopReason joined(StopReason a, StopReason b) {
  for (const auto reason : {StopReason::diverged, StopReason::interrupted, StopReason::callback, StopReason::epochs}) {
    if (a == reason || b == reason) return reason;
  }
  return StopReason::converged;
}

}  // namespace

ChannelGroups::ChannelGroups(std::int64_t nchan, std::int64_t at_once, std::string reason)
    : at_once_(at_once), reason_(std::move(reason)) {
  const auto count = (nchan + at_once - 1) / at_once;
  for (std::int64_t i = 0; i < count; ++i) groups_.push_back(share_of(nchan, i, count));
}

std::string ChannelGroups::words() const {
  return fmt::format("{} groups of at most {} channels are fitted one after another ({})", groups_.size(), most_channels(),
                     reason_);
}

std::string ChannelGroups::words_of(const Share& group) const {
  if (group.size() == 1) return fmt::format("channel {} of {}", group.begin, nchan());
  return fmt::format("channels {} to {} of {}", group.begin, group.end - 1, nchan());
}

std::filesystem::path ChannelGroups::state_of(const Share& group, const std::filesystem::path& state) const {
  return group.begin == 0 ? state : state / group_states_name / fmt::format("{:04}", group.begin);
}

ChannelGroups choose_channel_groups(const ImageOptions& options, const GroupingCase& of) {
  const auto refused = [&](const std::string& limit, const char* remedy) {
    return UsageError(error_text("--channels-at-once", fmt::format("{}", *options.channels_at_once), limit, remedy));
  };
  const auto asked = options.channels_at_once;
  if (of.before) {
    if (asked && std::min(*asked, of.nchan) != *of.before)
      throw refused(fmt::format("the run to resume has {} at a time", *of.before), "leave it out, or begin a new run");
    return {of.nchan, *of.before, "as before"};
  }
  if (asked && *asked < of.nchan) {
    if (const auto obstacle = obstacle_to_groups(options, of); !obstacle.empty())
      throw refused(obstacle, "leave one of them out");
    return {of.nchan, *asked, "asked for"};
  }
  if (asked || of.fits(of.nchan) || !obstacle_to_groups(options, of).empty()) return ChannelGroups(of.nchan);
  return {of.nchan, most_that_fit(of), "memory does not hold the fit of all"};
}

TrainResult GroupedResult::whole() const {
  auto whole = groups_.front();
  whole.history = {};
  for (const auto& group : groups_) whole.epochs = std::max(whole.epochs, group.epochs);
  for (std::int64_t epoch = 0; epoch < whole.epochs; ++epoch) {
    EpochLoss sum{epoch, 0, std::vector<double>(whole.columns.size())};
    for (const auto& group : groups_) {
      const bool goes_on = epoch < static_cast<std::int64_t>(group.history.size());
      const auto own = goes_on ? group.history[static_cast<std::size_t>(epoch)] : group.loss;
      if (goes_on) sum.learning_rate = own.learning_rate;
      std::transform(own.values.begin(), own.values.end(), sum.values.begin(), sum.values.begin(), std::plus<>());
    }
    whole.history.push_back(sum);
  }
  for (auto group = groups_.begin() + 1; group != groups_.end(); ++group) {
    std::transform(group->loss.values.begin(), group->loss.values.end(), whole.loss.values.begin(), whole.loss.values.begin(),
                   std::plus<>());
    whole.loss.epoch = std::max(whole.loss.epoch, group->loss.epoch);
    whole.resumed_from = std::max(whole.resumed_from, group->resumed_from);
    whole.stop_reason = joined(whole.stop_reason, group->stop_reason);
    whole.gap = whole.gap && group->gap ? std::optional(*whole.gap + *group->gap) : std::nullopt;
    if (whole.diagnosis.empty()) whole.diagnosis = group->diagnosis;
    whole.warnings.insert(whole.warnings.end(), group->warnings.begin(), group->warnings.end());
    if (whole.checkpoint_failure.empty()) whole.checkpoint_failure = group->checkpoint_failure;
    whole.checkpoint_epochs = group->checkpoint_epochs;
    whole.seconds += group->seconds;
    whole.seconds_checkpoints += group->seconds_checkpoints;
  }
  return whole;
}

}  // namespace mpol::cli
