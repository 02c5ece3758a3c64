#include <mpol_cpp/cli/run/run_data.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/weight_check.h>
#include <mpol_cpp/cli/output/stopwatch.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/fourier/operator_of_ranks.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::cli {
namespace {

/// The data, which know then what of memory they may take beside the fit.
DataOptions& with_sample_memory(ImageOptions& options) {
  options.data.memory_for_samples = memory_for_samples(options);
  return options.data;
}

}  // namespace

RunData::RunData(ImageOptions& options, ImageSummary& summary)
    : options_(options),
      summary_(summary),
      grid_(choose_grid(with_sample_memory(options))),
      coords_(grid_.coords),
      chosen_(choose_device(options.data.device)) {}

MemoryEstimate RunData::estimate_for(FitChannels channels) const {
  return fit_memory(options_, coords_.npix(), channels, visibilities_ ? &*visibilities_ : nullptr, device_);
}

double RunData::room() const {
  const auto samples = visibilities_ ? memory_of_samples(*visibilities_) : 0;  // they are there
  auto least = available_memory().value_or(std::numeric_limits<double>::infinity()) + samples;
  if (options_.memory_limit) least = std::min(least, *options_.memory_limit * 0x1p30);
  for (const auto device : chosen_.all) {
    if (device.is_cuda()) least = std::min(least, static_cast<double>(memory_info(device).free_bytes) + samples);
  }
  return least;
}

void RunData::check_memory_for(FitChannels channels) {
  const auto nchan = channels.at_once;
  estimate_ = estimate_for(channels);
  nchan_ = nchan;
  const auto all = estimate_.total();
  if (options_.memory_limit) check_memory_limit(all, *options_.memory_limit * 0x1p30, coords_.npix(), nchan);
  const auto needed = all - (visibilities_ ? memory_of_samples(*visibilities_) : 0);  // they are there
  check_memory(needed, free_ = available_memory(), coords_.npix(), nchan);
  for (const auto device : chosen_.all) {
    if (device.is_cuda())
      check_memory(needed, free_ = static_cast<double>(memory_info(device).free_bytes), coords_.npix(), nchan);
  }
}

Error RunData::out_of_memory() const { return cli::out_of_memory(estimate_, free_, options_, coords_.npix(), nchan_); }

void RunData::read() {
  const Stopwatch watch(summary_.seconds.reading);
  visibilities_.emplace(grid_.take_visibilities(options_.data));
  check_grid_holds(*visibilities_, options_.data, coords_);
  check_representable(visibilities_->data(), visibilities_->weights(), options_.data.dtype);
  check_no_hermitian_pairs(*visibilities_);
  if (const auto warning = field_warning(visibilities_->baselines(), coords_); !warning.empty()) log_warning(warning);
  stop_if_requested();
}

void RunData::share(Agreement& sharing, std::optional<std::int64_t> before) {
  const auto all = ranks()->size(), nchan = nchan_of_image();
  if (chosen_.are_several()) {
    sharding_ = choose_sharding_of_devices(options_, nchan);
    team_.emplace(options_, chosen_.all, coords_.npix(), nchan);
    device_ = team_->first();
    chosen_groups(before);  // before anything is said or made
    if (options_.output.speaks()) fmt::print("{}\n", team_->words(sharding_, visibilities_->nvis()));
    return;
  }
  const ImageSize size{coords_.npix(), nchan, visibilities_->nvis()};
  sharding_ = choose_sharding(options_, size, all);
  if (all == 1) return;
  chosen_groups(before);  // while others leave without a word where it refuses
  sharing.announce(static_cast<std::int64_t>(sharding_.shard));
  if (options_.output.speaks()) fmt::print("{}\n", plan_words(sharding_, options_, size, all));
  if (shares_samples()) take_own_samples();
}

void RunData::share_as(Shard shard) {
  sharding_.shard = shard;
  if (shares_samples()) take_own_samples();
}

bool RunData::shares_samples() const {
  return !team_ && sharding_.shard == Shard::visibilities && options_.likelihood == FitLikelihood::loose;
}

/// Copies this rank's samples, if it has any. The first keeps all besides, for its products.
void RunData::take_own_samples() {
  const auto share = share_of(visibilities_->nvis(), ranks()->rank(), ranks()->size());
  if (share.is_empty()) return;
  own_samples_ = visibilities_->select(at::arange(share.begin, share.end, torch::kInt64));
  if (!ranks()->is_first()) visibilities_ = own_samples_;
}

std::shared_ptr<RankedLikelihoodImpl> RunData::likelihood_of_ranks() const {
  const auto make = [this](const Visibilities& share) { return make_likelihood(options_, share, channels_, dataset_, device_); };
  return RankedLikelihood(ranks(), coords_, own_samples_, channels_, device_, make).ptr();
}

bool RunData::shares_folds() const {
  const bool searches = !options_.regularizers.searched.empty() && !options_.dry_run;
  return searches && !ranks()->is_alone() && options_.shard != Shard::none;
}

void RunData::average_and_make_likelihood(std::optional<std::int64_t> before) {
  const Stopwatch watch(summary_.seconds.gridding);
  const auto nchan = visibilities_->nchan();
  channels_ = options_.mode == ImageMode::continuum ? ChannelMap::continuum(nchan) : ChannelMap::cube(nchan);
  choose_groups(before);
  check_memory_for(held_channels(groups_.most_channels()));
  if (ranks()->is_first() || sharding_.shard == Shard::channels || shares_samples() || shares_folds()) average();
  stop_if_requested();
  if (groups_.are_several()) {
    size_ = size_of_data();
    tell_groups();
  } else {
    make_likelihood_of_fit();
  }
}

ChannelGroups RunData::chosen_groups(std::optional<std::int64_t> before) const {
  const bool several = team_ || (!ranks()->is_alone() && !options_.dry_run);
  const auto fits = [this](std::int64_t at_once) { return estimate_for(held_channels(at_once)).total() <= room(); };
  return choose_channel_groups(options_, {nchan_of_image(), several ? sharding_.shard : Shard::channels, before, fits});
}

/// All ranks take what the first finds.
void RunData::choose_groups(std::optional<std::int64_t> before) {
  if (ranks()->is_first()) groups_ = chosen_groups(before);
  if (ranks()->is_alone() || options_.dry_run || sharding_.shard != Shard::channels) return;
  const auto at_once = text_of_first(fmt::format("{}", groups_.at_once()));
  if (!ranks()->is_first()) groups_ = ChannelGroups(channels_.nchan(), std::stoll(at_once), "as the first rank");
}

void RunData::tell_groups() const {
  summary_.channels_at_once = groups_.most_channels();
  if (!options_.channels_at_once)
    summary_.choices.push_back({"channels-at-once", fmt::format("{}", groups_.most_channels()), groups_.reason()});
  if (options_.output.speaks() && !options_.dry_run) fmt::print("{}\n", groups_.words());
}

void RunData::hold_group(const Share& group) {
  const Stopwatch watch(summary_.seconds.gridding);
  likelihood_.reset();
  part_ = {};
  std::vector<std::int64_t> own(static_cast<std::size_t>(group.size()));
  std::iota(own.begin(), own.end(), group.begin);
  const auto samples = visibilities_->select_channels(own);
  if (team_) {
    team_->hold_channels(samples, coords_);
    return;
  }
  part_ = ChannelPart(samples, coords_, ranks());
  if (part_.has_work()) likelihood_ = make_likelihood(options_, part_.visibilities(), part_.map(), part_.dataset(), device_);
}

void RunData::serve() const {
  if (sharding_.shard == Shard::rows) serve_slabs(*slabs_);
  else ranked_likelihood_->serve();
}

void RunData::release_ranks() {
  if (slab_likelihood_) slab_likelihood_->release();
  if (ranked_likelihood_) ranked_likelihood_->release();
}

FitData RunData::fit_data() const {
  return {*visibilities_, channels_, dataset_, imaging_of(options_), options_.data.parts->ranges(visibilities_->nvis())};
}

FitChannels RunData::held_channels(std::int64_t at_once) const {
  const auto all = ranks()->is_first() ? nchan_of_image() : 0;
  if (sharding_.shard != Shard::channels) return {at_once, all};
  if (team_) return {team_->most_channels(at_once), all};
  return {share_of(at_once, 0, std::min(ranks()->size(), at_once)).size(), all};
}

void RunData::average() {
  const DataAverager averager(coords_, *visibilities_,
                              DataAveragerOptions().channel_map(channels_).scatter_check(ScatterCheck::off));
  summary_.scatter = averager.scatter();
  dataset_ = averager.to_dataset();
  check_scatter();
}

void RunData::make_likelihood_of_fit() {
  if (team_ && sharding_.shard == Shard::channels) {
    size_ = team_->hold_channels(*visibilities_, coords_);
    return;
  }
  if (sharding_.shard == Shard::rows) {
    slabs_ = std::make_shared<SlabOperator>(operator_of_ranks(coords_, *visibilities_, channels_, *ranks()), ranks());
    if (ranks()->is_first()) likelihood_ = slab_likelihood_ = SlabLikelihood(slabs_).ptr();
  } else if (team_ && sharding_.shard == Shard::visibilities) {
    likelihood_ = team_->share_visibilities(fit_data());
  } else if (shares_samples()) {
    likelihood_ = ranked_likelihood_ = likelihood_of_ranks();
  } else if (sharding_.shard == Shard::visibilities) {
    ExactLikelihood exact(operator_of_ranks(coords_, *visibilities_, channels_, *ranks(), KernelStorage{options_.kernel_folder}));
    exact->to(device_);
    likelihood_ = exact.ptr();
  } else if (sharding_.shard == Shard::channels) {
    part_ = ChannelPart(*visibilities_, coords_, ranks());
    if (part_.has_work()) likelihood_ = make_likelihood(options_, part_.visibilities(), part_.map(), part_.dataset(), device_);
  } else if (ranks()->is_first()) {
    likelihood_ = make_likelihood(options_, *visibilities_, channels_, dataset_, device_);
  }
  size_ = size_of_fit();
}

/// Summed over the ranks that hold channels, else of this rank's likelihood.
FitSize RunData::size_of_fit() const {
  const auto size = likelihood_ ? FitSize::of(likelihood_, options_) : FitSize();
  const bool known_to_first = !part_.holds_channels() && shares_folds();  // folds are weighed by numbers of the whole
  if (!part_.holds_channels() && !known_to_first) return size;
  const bool counts = part_.holds_channels() || ranks()->is_first();
  std::vector<double> numbers = {size.normalizer, static_cast<double>(size.samples), static_cast<double>(size.visibilities)};
  if (!counts) numbers.assign(numbers.size(), 0.0);
  ranks()->sum(numbers);
  if (options_.normalize == Normalize::none) numbers[0] = 0.5;
  return {numbers[0], static_cast<std::int64_t>(numbers[1]), static_cast<std::int64_t>(numbers[2])};
}

/// The same of all channels by their data, before there is any likelihood of them.
FitSize RunData::size_of_data() const {
  const auto cells = dataset_->ncells(), visibilities = visibilities_->nvis() * visibilities_->nchan();
  const auto normalizer = options_.normalize == Normalize::none           ? 0.5
                          : options_.normalize == Normalize::visibilities ? static_cast<double>(visibilities)
                                                                          : static_cast<double>(cells);
  return {normalizer, options_.likelihood == FitLikelihood::gridded ? cells : visibilities, visibilities};
}

/// Doubts about the weights before the fit. One that stands still at its end is asked instead: see findings(). Only cell
/// averages need right weights, and only they are refused for wrong ones.
void RunData::check_scatter() {
  const bool gridded = options_.likelihood == FitLikelihood::gridded;
  if (options_.scatter_check == ScatterCheck::off || (!gridded && choose_optimizer(options_).tolerance)) return;
  const auto warning = weights_warning(summary_.scatter, coords_, *visibilities_);
  if (warning.empty()) return;
  if (options_.scatter_check == ScatterCheck::error && gridded)
    throw DataError(warning + "; scale them with mpol weights, or use --scatter-check off");
  log_warning(warning);
  weights_are_doubted_ = true;
}

PartToFit RunData::own_part() const {
  if (!part_.holds_channels()) return {fit_data(), likelihood_, device_};
  return {{part_.visibilities(), part_.map(), part_.dataset(), imaging_of(options_)}, likelihood_, device_, part_.ranks()};
}

double RunData::chi_squared_of_visibilities(const Tensor& sky) const {
  return losses::loose_chi_squared(coords_, sky, *visibilities_, channels_);
}

}  // namespace mpol::cli
