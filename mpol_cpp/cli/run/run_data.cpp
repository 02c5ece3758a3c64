#include <mpol_cpp/cli/run/run_data.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/weight_check.h>
#include <mpol_cpp/cli/output/stopwatch.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/run/fit_terms.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/fourier/operator_of_ranks.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::cli {
namespace {

/// Who waits for the end of a fit ends with the first rank, not by a time-out.
constexpr auto longest_fit = std::chrono::hours(24 * 365);

}  // namespace

RunData::RunData(ImageOptions& options, ImageSummary& summary)
    : options_(options),
      summary_(summary),
      reading_(options),
      grid_(reading_.grid(options)),
      coords_(grid_.coords),
      chosen_(choose_device(options.data.device)) {}

/// Samples that are not read yet count as if they went to disk, as they do where they do not fit beside the fit.
MemoryEstimate RunData::estimate_for(FitChannels channels) const {
  std::optional<SampleSizes> samples;
  if (visibilities_) samples = SampleSizes::of(*visibilities_);
  else if (const auto& all = reading_.size(); all && ranks()->is_first())
    samples = {all->nchan * all->samples, std::min(all->bytes, resident_bytes_of_disk)};
  return fit_memory(options_, coords_.npix(), channels, samples, device_);
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

bool RunData::make_room_for_usual_errors() {
  const auto part = memory_of_errors(usual_samples, coords_.npix(), held_channels(groups_.most_channels()), true);
  const auto is_same = [&part](const MemoryPart& other) { return other.name == part.name; };
  if (std::any_of(estimate_.parts.begin(), estimate_.parts.end(), is_same)) return true;  // of a group before
  auto free = available_memory().value_or(std::numeric_limits<double>::infinity());
  if (options_.memory_limit) free = std::min(free, *options_.memory_limit * 0x1p30 - estimate_.total());
  if (device_.is_cuda()) free = std::min(free, static_cast<double>(memory_info(device_).free_bytes));
  if (part.bytes > free) return false;
  estimate_.parts.push_back(part);
  return true;
}

Error RunData::out_of_memory() const { return cli::out_of_memory(estimate_, free_, options_, coords_.npix(), nchan_); }

void RunData::read() {
  const Stopwatch watch(summary_.seconds.reading);
  visibilities_.emplace(grid_.take_visibilities(options_.data));
  outline_.emplace(*visibilities_);
  uv_ = grid_.uv ? *grid_.uv : summarize_uv(visibilities_->baselines());
  check_grid_holds(*visibilities_, options_.data, coords_);
  check_representable(visibilities_->data(), visibilities_->weights(), options_.data.dtype);
  check_no_hermitian_pairs(*visibilities_);
  choose_sign();
  if (const auto warning = field_warning(*visibilities_, uv_, coords_); !warning.empty()) log_warning(warning);
  stop_if_requested();
}

/// Takes this rank's share of what is not read by it whole.
void RunData::take_share(const VisibilityShare& share) {
  visibilities_ = reading_.get(options_, grid_, share);
  held_channels_ = share.channels;
}

void RunData::choose_sign() {
  if (options_.sign) return;
  const auto stokes = visibilities_->observation().stokes;
  options_.sign = natural_sign(stokes);
  if (options_.sign == PixelSign::positive) return;
  check_sign(options_);
  chosen_sign_ = Choice{"sign", choice_name(options_.sign, sign_choices), stokes_text(stokes) + " may be negative"};
}

void RunData::read_and_share(Agreement& sharing, std::optional<std::int64_t> before, const std::function<void()>& decided) {
  if (!reading_.is_from_file()) read();
  decide_shares(sharing, before);
  decided();
  if (reads_own_channels_) {
    const Stopwatch watch(summary_.seconds.reading);
    take_share(*share_of_rank(ranks()->rank()));
    know_all_by_channels();
    check_no_hermitian_pairs(*visibilities_);
    choose_sign();
    stop_if_requested();
    return;
  }
  if (reading_.is_from_file()) read();
  if (team_ || ranks()->is_alone() || sharding_.shard == Shard::none) return;
  reading_.send(*visibilities_, [this](std::int64_t rank) { return share_of_rank(rank); });
  if (sharding_.shard == Shard::visibilities || sharding_.shard == Shard::rows) take_own_samples();
}

void RunData::decide_shares(Agreement& sharing, std::optional<std::int64_t> before) {
  const auto all = ranks()->size(), nchan = nchan_of_image();
  if (chosen_.are_several()) {
    sharding_ = choose_sharding_of_devices(options_, nchan);
    team_.emplace(options_, chosen_.all, coords_.npix(), nchan);
    device_ = team_->first();
    choose_groups(before);  // before anything is said or made
    if (options_.output.speaks()) fmt::print("{}\n", team_->words(sharding_, nvis_of_data()));
    return;
  }
  const ImageSize size{coords_.npix(), nchan, nvis_of_data()};
  std::optional<SharedStep> step;
  if (const auto& speed = speed_of_exchange()) {
    step = SharedStep{*speed, static_cast<double>(nvis_of_data()) * static_cast<double>(nchan_of_data()),
                      seconds_of_sample(device_, options_.data.dtype, at::get_num_threads())};
  }
  sharding_ = choose_sharding(options_, size, all, step);
  choose_groups(before);  // while others leave without a word where it refuses
  if (all == 1) return;
  reads_own_channels_ = reading_.may_be_apart() && sharding_.shard == Shard::channels && !groups_.are_several();
  if (reading_.may_be_apart() && !reads_own_channels_) grid_.visibilities.reset();  // which are not all
  sharing.announce(static_cast<std::int64_t>(sharding_.shard));
  numbers_of_first<2>({static_cast<double>(groups_.at_once()), reads_own_channels_ ? 1.0 : 0.0});
  reading_.tell_size(visibilities_);
  if (options_.output.speaks()) fmt::print("{}\n", plan_words(sharding_, options_, size, all));
}

/// Makes this rank's part of the channels. The scatter is that of all, but what it is without the source is asked of the first
/// rank's.
void RunData::hold_own_channels() {
  CellStatistics statistics;
  part_ = ChannelPart(
      nchan_of_data(), [this](const Share& share) { return channels(share); }, coords_, ranks(), {},
      reads_own_channels_ ? &statistics : nullptr);
  if (!reads_own_channels_) return;
  summary_.scatter = scatter_of_ranks(statistics, *ranks());
  if (ranks()->is_first()) check_scatter();
}

/// What the first rank knows of all data, put together from the channels of all that have been read; how far flux reaches is
/// asked of its own.
void RunData::know_all_by_channels() {
  const auto known = outline_of_ranks(visibilities_ ? &*visibilities_ : nullptr, *ranks());
  if (known) {
    outline_ = known->first;
    uv_ = known->second;
  }
  const auto [longest] = numbers_of_first<1>({std::max(uv_.max_abs_u, uv_.max_abs_v)});  // all refuse it, or none
  const auto frequencies = known ? known->first.frequencies : visibilities_ ? visibilities_->frequencies() : Tensor();
  check_grid_holds(longest, frequencies, options_.data, coords_);
  if (!known) return;
  if (const auto warning = field_warning(*visibilities_, uv_, coords_); !warning.empty()) log_warning(warning);
}

bool RunData::get_share(const std::function<void()>& decided) {
  if (!reading_.is_of_shares()) read();
  const auto way = Agreement::wait();
  if (way == 0) return false;  // the first has nothing to do, or says why not
  sharding_.shard = static_cast<Shard>(way);
  const auto [at_once, reads_own] = numbers_of_first<2>({});
  reads_own_channels_ = reads_own > 0;
  if (!reads_own_channels_) grid_.visibilities.reset();  // which were for looking at
  decided();
  reading_.tell_size(std::nullopt);
  groups_ = ChannelGroups(nchan_of_image(), static_cast<std::int64_t>(at_once), "as the first rank");
  if (sharding_.shard == Shard::none) return shares_folds();
  const Stopwatch watch(summary_.seconds.reading);
  const bool of_channels = sharding_.shard == Shard::channels;
  if (!reading_.is_of_shares()) {
    if (!of_channels) take_own_samples();
  } else if (const auto share = share_of_rank(ranks()->rank())) {
    take_share(*share);
    choose_sign();
    if (!of_channels) own_samples_ = visibilities_;
  }
  if (reads_own_channels_) know_all_by_channels();
  return true;
}

bool RunData::shares_samples() const {
  return !team_ && sharding_.shard == Shard::visibilities && options_.likelihood_kind().goes_through_samples;
}

/// Copies this rank's samples, if it has any. The first keeps all besides, for its products; others where they share folds.
void RunData::take_own_samples() {
  const auto share = share_of(visibilities_->nvis(), ranks()->rank(), ranks()->size());
  if (!share.is_empty()) own_samples_ = visibilities_->select(at::arange(share.begin, share.end, torch::kInt64));
  if (ranks()->is_first() || shares_folds() || share.is_empty()) return;
  visibilities_ = own_samples_;
}

/// What a rank holds: its channels of all groups, or its samples. Nothing where it has none.
std::optional<VisibilityShare> RunData::share_of_rank(std::int64_t rank) const {
  const auto all = ranks()->size();
  if (sharding_.shard != Shard::channels) {
    const auto samples = share_of(nvis_of_data(), rank, all);
    return samples.is_empty() ? std::nullopt : std::optional(VisibilityShare{.samples = samples});
  }
  VisibilityShare share;
  for (const auto& group : groups_.all()) {
    const auto own = share_of(group.size(), rank, all);
    for (auto channel = own.begin; channel < own.end; ++channel) share.channels.push_back(group.begin + channel);
  }
  return share.channels.empty() ? std::nullopt : std::optional(std::move(share));
}

/// The data of some channels, which this rank holds.
Visibilities RunData::channels(const Share& wanted) const {
  auto first = wanted.begin;
  if (!held_channels_.empty())
    first = std::find(held_channels_.begin(), held_channels_.end(), wanted.begin) - held_channels_.begin();
  std::vector<std::int64_t> own(static_cast<std::size_t>(wanted.size()));
  std::iota(own.begin(), own.end(), first);
  return visibilities_->select_channels(own);
}

std::shared_ptr<RankedLikelihoodImpl> RunData::likelihood_of_ranks() const {
  const auto make = [this](const Visibilities& share) { return make_likelihood(options_, share, channels_, dataset_, device_); };
  return RankedLikelihood(ranks(), coords_, own_samples_, channels_, device_, make).ptr();
}

bool RunData::shares_folds() const {
  const bool searches = !options_.regularizers.searched.empty() && !options_.dry_run;
  return searches && !ranks()->is_alone() && options_.shard != Shard::none;
}

void RunData::average_and_make_likelihood() {
  const Stopwatch watch(summary_.seconds.gridding);
  const auto nchan = nchan_of_data();
  channels_ = options_.mode == ImageMode::continuum ? ChannelMap::continuum(nchan) : ChannelMap::cube(nchan);
  if (options_.dry_run) choose_groups(std::nullopt);
  check_memory_for(held_channels(groups_.most_channels()));
  const bool holds_part =
      reads_own_channels_ || (!ranks()->is_first() && sharding_.shard == Shard::channels && reading_.is_of_shares());
  if (visibilities_ && !holds_part && (ranks()->is_first() || shares_samples() || shares_folds())) average();
  stop_if_requested();
  if (!groups_.are_several()) {
    make_likelihood_of_fit();
    if (sharding_.shard != Shard::channels) end_patience();  // of channels when the first has said what they are weighed by
    return;
  }
  size_ = summed(ranks()->is_first() ? size_of_data() : FitSize());
  if (ranks()->is_first()) tell_groups();
}

void RunData::choose_groups(std::optional<std::int64_t> before) {
  const auto nchan = nchan_of_image();
  const bool several = team_ || (!ranks()->is_alone() && !options_.dry_run);
  const auto fits = [&](std::int64_t at_once) {  // groups are so small that their errors fit as well
    const auto channels = held_channels(at_once);
    const double errors = at_once < nchan && samples_usual_errors(options_)
                              ? memory_of_errors(usual_samples, coords_.npix(), channels, true).bytes
                              : 0;
    return estimate_for(channels).total() + errors <= room();
  };
  if (before == 0) before = nchan;
  groups_ = choose_channel_groups(options_, {nchan, several ? sharding_.shard : Shard::channels, before, fits});
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
  first_held_ = group.begin;
  const auto select = [&](const Share& share) { return channels({group.begin + share.begin, group.begin + share.end}); };
  if (team_) {
    team_->hold_channels(group, select, coords_);
    return;
  }
  part_ = ChannelPart(group.size(), select, coords_, ranks());
  if (part_.has_work()) likelihood_ = make_likelihood(options_, part_.visibilities(), part_.map(), part_.dataset(), device_);
}

void RunData::serve() const {
  if (sharding_.shard == Shard::rows) serve_slabs(*slabs_);
  else ranked_likelihood_->serve();
}

void RunData::release_ranks() {
  if (others_wait_) ask_for_products(std::nullopt);
  if (slab_likelihood_) slab_likelihood_->release();
  if (ranked_likelihood_) ranked_likelihood_->release();
}

FitData RunData::fit_data() const {
  if (reads_own_channels_) return own_part().data;
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
    size_ = team_->hold_channels(
        {0, nchan_of_data()}, [this](const Share& share) { return channels(share); }, coords_);
    return;
  }
  if (sharding_.shard == Shard::rows) {
    slabs_ = std::make_shared<SlabOperator>(
        operator_of_shares(coords_, own_samples_ ? &*own_samples_ : nullptr, channels_, *ranks()), ranks());
    own_samples_.reset();
    if (ranks()->is_first()) likelihood_ = slab_likelihood_ = SlabLikelihood(slabs_).ptr();
  } else if (team_ && sharding_.shard == Shard::visibilities) {
    likelihood_ = team_->share_visibilities(fit_data());
  } else if (shares_samples()) {
    likelihood_ = ranked_likelihood_ = likelihood_of_ranks();
  } else if (sharding_.shard == Shard::visibilities) {
    ExactLikelihood exact(operator_of_shares(coords_, own_samples_ ? &*own_samples_ : nullptr, channels_, *ranks(),
                                             KernelStorage{options_.kernel_folder}));
    others_wait_ = shares_products() && ranks()->is_first();
    if (!shares_products() || ranks()->is_first()) own_samples_.reset();  // the first has all besides
    exact->to(device_);
    likelihood_ = exact.ptr();
  } else if (sharding_.shard == Shard::channels) {
    hold_own_channels();
    if (part_.has_work()) likelihood_ = make_likelihood(options_, part_.visibilities(), part_.map(), part_.dataset(), device_);
  } else if (ranks()->is_first()) {
    likelihood_ = make_likelihood(options_, *visibilities_, channels_, dataset_, device_);
  }
  size_ = size_of_fit();
}

/// Summed over the ranks that hold channels, else of this rank's likelihood.
FitSize RunData::size_of_fit() const {
  const auto& cells = part_.holds_channels() ? part_.dataset() : dataset_;
  const auto size = likelihood_ ? FitSize::of(likelihood_, cells.is_empty() ? 0 : cells->ncells(), options_) : FitSize();
  const bool known_to_first = !part_.holds_channels() && shares_folds();  // folds are weighed by numbers of the whole
  if (!part_.holds_channels() && !known_to_first) return size;
  const bool counts = part_.holds_channels() || ranks()->is_first();
  return summed(counts ? size : FitSize());
}

/// Over ranks.
FitSize RunData::summed(const FitSize& own) const {
  std::vector<double> numbers = {own.normalizer, static_cast<double>(own.samples), static_cast<double>(own.visibilities),
                                 static_cast<double>(own.cells)};
  ranks()->sum(numbers);
  if (options_.normalize == Normalize::none) numbers[0] = 0.5;
  return {numbers[0], static_cast<std::int64_t>(numbers[1]), static_cast<std::int64_t>(numbers[2]),
          static_cast<std::int64_t>(numbers[3])};
}

/// The same of all channels by their data, before there is any likelihood of them.
FitSize RunData::size_of_data() const {
  const auto cells = dataset_->ncells(), visibilities = nvis_of_data() * nchan_of_data();
  const auto normalizer = options_.normalize == Normalize::none           ? 0.5
                          : options_.normalize == Normalize::visibilities ? static_cast<double>(visibilities)
                                                                          : static_cast<double>(cells);
  return {normalizer, options_.likelihood_kind().of_cells ? cells : visibilities, visibilities, cells};
}

/// Doubts about the weights before the fit. One that stands still at its end is asked instead: see findings(). Only cell
/// averages need right weights, and only they are refused for wrong ones.
void RunData::check_scatter() {
  const bool gridded = options_.likelihood_kind().of_cells;
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
  const FitData own{part_.visibilities(), part_.map(), part_.dataset(), imaging_of(options_)};
  return {own, likelihood_, device_, part_.ranks(), {first_held_ + part_.first(), nchan_of_image()}};
}

FirstLook RunData::first_look() const {
  const auto how = looking(options_, nchan_of_image(), size_.normalizer);
  if (!reads_own_channels_) return look_at(fit_data(), how);
  if (!part_.has_work()) return look_at(nullptr, how, *ranks());
  const auto own = own_part().data;
  return look_at(&own, how, *ranks());
}

std::optional<DirtyProducts> RunData::products_of_ranks(const Tensor& sky) const {
  auto& ranks = *part_.ranks();
  auto numbers = at::zeros({4}, torch::kFloat64);
  if (ranks.is_first() && fit_data().parts.empty()) {
    const auto frame = reads_own_channels_ ? product_frame(coords_, *outline_, uv_) : product_frame(fit_data(), uv_);
    numbers = at::tensor({1.0, frame.longest, frame.wide.cell_size(), static_cast<double>(frame.wide.npix())}, torch::kFloat64);
  }
  ranks.broadcast(numbers);
  const auto* told = numbers.const_data_ptr<double>();
  if (told[0] == 0) return std::nullopt;
  const ProductFrame frame{told[1], GridCoords(told[2], static_cast<std::int64_t>(told[3]))};
  return dirty_products(own_part().data, sky.to(torch::kCPU, torch::kFloat64), frame, ranks);
}

bool RunData::shares_products() const {
  return !ranks()->is_alone() && !team_ && sharding_.shard == Shard::visibilities && !shares_samples() && !shares_folds() &&
         !groups_.are_several() && nvis_of_data() >= ranks()->size();
}

/// What the first rank says to those that wait; on all. @param frame  nothing: they may go
std::optional<ProductFrame> RunData::ask_for_products(const std::optional<ProductFrame>& frame) {
  others_wait_ = false;
  std::array<double, 3> numbers{};
  if (frame) numbers = {frame->longest, frame->wide.cell_size(), static_cast<double>(frame->wide.npix())};
  const auto [longest, cell_size, npix] = numbers_of_first<3>(numbers);
  if (npix == 0) return std::nullopt;
  return ProductFrame{longest, GridCoords(cell_size, static_cast<std::int64_t>(npix))};
}

/// The part of each rank.
std::optional<DirtyProducts> RunData::products_in(const ProductFrame& frame, Tensor sky) const {
  const auto nchan = nchan_of_image();
  auto cells = ranks()->is_first() ? dataset_->cells() : Tensor(), weights = ranks()->is_first() ? dataset_->weights() : Tensor();
  const auto [ncells] = numbers_of_first<1>({cells.defined() ? static_cast<double>(cells.size(0)) : 0});
  if (!ranks()->is_first()) {
    cells = at::empty({static_cast<std::int64_t>(ncells)}, torch::kInt64);
    weights = at::empty({static_cast<std::int64_t>(ncells)}, torch::kFloat64);
    sky = at::empty({nchan, coords_.npix(), coords_.npix()}, torch::kFloat64);
  }
  for (auto* of_first : {&cells, &weights, &sky}) ranks()->broadcast(*of_first);
  const GriddedDataset averages(coords_, nchan, cells, at::zeros(weights.sizes(), torch::kComplexDouble), weights);
  return dirty_products_of_samples({*own_samples_, channels_, averages, Imaging::exact}, sky, frame, *ranks());
}

std::optional<DirtyProducts> RunData::products_with_others(const Tensor& sky) {
  const auto data = fit_data();
  if (!others_wait_ || !data.parts.empty()) return std::nullopt;
  const auto frame = ask_for_products(product_frame(data, uv_));
  take_own_samples();
  return products_in(*frame, sky.to(torch::kCPU, torch::kFloat64).contiguous());
}

void RunData::help_with_products() {
  const auto usual = ranks()->timeout();
  ranks()->set_timeout(longest_fit);
  const auto frame = ask_for_products(std::nullopt);
  ranks()->set_timeout(usual);
  if (frame) products_in(*frame, {});
}

std::vector<Beam> RunData::beams_of_channels() const {
  const auto of = [this](const Visibilities& data, const ChannelMap& channels) {
    return dirty_beams(coords_, data, channels, imaging_of(options_));
  };
  if (team_ || sharding_.shard != Shard::channels) return fits_beams(of(*visibilities_, channels_));
  auto beams = at::zeros({nchan_of_image(), 3}, torch::kFloat64);
  if (const auto share = share_of_rank(ranks()->rank())) {
    const auto& own = share->channels;
    const auto held = held_channels_.empty() ? visibilities_->select_channels(own) : *visibilities_;
    const auto rows = rows_of_beams(of(held, ChannelMap::cube(static_cast<std::int64_t>(own.size()))));
    beams.index_copy_(0, at::tensor(own, torch::kInt64), rows);
  }
  ranks()->all_reduce_sum(beams);
  return fits_beams(beams_of_rows(beams));
}

double RunData::chi_squared_of_visibilities(const Tensor& sky) const {
  return losses::loose_chi_squared(coords_, sky, *visibilities_, channels_);
}

}  // namespace mpol::cli
