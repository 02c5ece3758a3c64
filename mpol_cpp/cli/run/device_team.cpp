#include <mpol_cpp/cli/run/device_team.h>

#include <algorithm>
#include <utility>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/likelihoods/shared/shared_likelihood.h>
#include <mpol_cpp/train/steps/step_timing.h>

namespace mpol::cli {
namespace {

constexpr double seconds_of_measurement = 0.2;

std::vector<double> speeds_of(const ImageOptions& options, const std::vector<torch::Device>& devices, std::int64_t npix) {
  if (options.deterministic || options.shard == Shard::none) return {};
  const auto step = StepTimingOptions().dtype(options.data.dtype).least_seconds(seconds_of_measurement);
  return relative_speeds(npix, devices, step);
}

}  // namespace

bool devices_share_folds(const ImageOptions& options) {
  return !options.regularizers.searched.empty() && options.crossval.score == Score::folds && options.shard != Shard::none &&
         !options.dry_run;
}

DeviceTeam::DeviceTeam(const ImageOptions& options, const std::vector<torch::Device>& devices, std::int64_t npix,
                       std::int64_t nchan)
    : options_(options), nchan_(nchan), group_(std::make_shared<DeviceGroup>(devices, speeds_of(options, devices, npix))) {}

std::int64_t DeviceTeam::most_channels(std::int64_t nchan) const {
  const auto shares = shares_by_speed(nchan, group_->speeds());
  std::int64_t on_cpu = 0, most = 0;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    if (group_->devices()[rank].is_cpu()) on_cpu += shares[rank].size();
    most = std::max({most, on_cpu, shares[rank].size()});
  }
  return most;
}

std::string DeviceTeam::words(const Sharding& sharding, std::int64_t samples) const {
  const auto each = [&](const std::vector<Share>& shares) {
    std::vector<std::string> words;
    for (std::size_t rank = 0; rank < shares.size(); ++rank)
      words.push_back(fmt::format("{} {}", group_->devices()[rank].str(), shares[rank].size()));
    return fmt::format("{}", fmt::join(words, ", "));
  };
  std::string text;
  switch (sharding.shard) {
    case Shard::channels:
      text = fmt::format("{} devices share channels ({}): {} of {}", group_->size(), sharding.reason,
                         each(shares_by_speed(nchan_, group_->speeds())), nchan_);
      break;
    case Shard::visibilities:
      text = fmt::format("{} devices share visibilities in each step ({}): {} of {} samples a channel", group_->size(),
                         sharding.reason, each(sample_shares(samples, group_->speeds())), samples);
      break;
    case Shard::rows:  // which devices do not share: choose_sharding_of_devices()
    case Shard::none:
      text = fmt::format("{} devices: {} makes the fit ({})", group_->size(), first().str(), sharding.reason);
      break;
  }
  return devices_share_folds(options_) ? text + "; all share the folds of the cross-validation" : text;
}

std::shared_ptr<Likelihood> DeviceTeam::share_visibilities(const FitData& data) {
  const auto make = [&](const Visibilities& share, torch::Device device) {
    return make_likelihood(options_, share, data.channels, data.dataset, device);
  };
  return SharedLikelihood(group_, data.coords(), data.visibilities, data.channels, make).ptr();
}

FitSize DeviceTeam::hold_channels(const Share& channels, const std::function<Visibilities(const Share&)>& select,
                                  const GridCoords& coords) {
  first_ = channels.begin;
  parts_.assign(static_cast<std::size_t>(group_->size()), {});
  likelihoods_.assign(parts_.size(), {});
  fitted_.clear();
  group_->run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
    const auto rank = static_cast<std::size_t>(ranks->rank());
    auto& part = parts_[rank] = ChannelPart(channels.size(), select, coords, ranks, group_->speeds());
    if (part.has_work()) likelihoods_[rank] = make_likelihood(options_, part.visibilities(), part.map(), part.dataset(), device);
  });
  FitSize all;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    if (!likelihoods_[rank]) continue;
    const auto own = FitSize::of(likelihoods_[rank], parts_[rank].dataset()->ncells(), options_);
    all.normalizer = options_.normalize == Normalize::none ? own.normalizer : all.normalizer + own.normalizer;
    all.samples += own.samples;
    all.visibilities += own.visibilities;
    all.cells += own.cells;
  }
  return all;
}

PartToFit DeviceTeam::part_of(std::size_t rank, torch::Device device) const {
  const auto& part = parts_[rank];
  const FitData data{part.visibilities(), part.map(), part.dataset(), imaging_of(options_)};
  return {data, likelihoods_[rank], device, part.ranks(), {first_ + part.first(), nchan_}};
}

FittedPart DeviceTeam::fit(const FitPlan& plan) {
  fitted_.assign(parts_.size(), {});
  FittedPart whole;
  group_->run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
    const auto rank = static_cast<std::size_t>(ranks->rank());
    if (!parts_[rank].has_work()) return;
    auto& fitted = fitted_[rank] = fit_part(plan, part_of(rank, device));
    if (!ranks->is_first()) return;
    whole = fitted;
    fitted.sky = Tensor();
  });
  return whole;
}

PartErrors DeviceTeam::errors(const std::vector<Beam>& beams) {
  PartErrors all;
  group_->run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
    const auto rank = static_cast<std::size_t>(ranks->rank());
    if (!parts_[rank].has_work()) return;
    auto errors = errors_of_part(options_, part_of(rank, device), fitted_[rank], beams);
    if (ranks->is_first()) all = std::move(errors);
  });
  return all;
}

}  // namespace mpol::cli
