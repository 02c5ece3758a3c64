#include <mpol_cpp/cli/run/image_run.h>

#include <algorithm>
#include <csignal>
#include <cmath>
#include <fstream>
#include <iostream>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <c10/util/Exception.h>

#include <mpol_cpp/cli/output/diagnostics_files.h>
#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/run/part_fit.h>
#include <mpol_cpp/cli/run/image_results.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/image/noise_choice.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/weight_check.h>
#include <mpol_cpp/cli/program/command_line.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/run/ranks.h>
#include <mpol_cpp/cli/run/block_stage.h>
#include <mpol_cpp/cli/run/bounded_weights.h>
#include <mpol_cpp/cli/run/channel_part.h>
#include <mpol_cpp/cli/run/device_choice.h>
#include <mpol_cpp/cli/run/device_team.h>
#include <mpol_cpp/cli/run/fit_terms.h>
#include <mpol_cpp/cli/run/sharding.h>
#include <mpol_cpp/cli/run/stopwatch.h>
#include <mpol_cpp/cli/report/findings.h>
#include <mpol_cpp/cli/report/report.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/program/run_environment.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/fourier/operator_of_ranks.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/shared/ranked_likelihood.h>
#include <mpol_cpp/likelihoods/shared/slab_likelihood.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/device/precision.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::cli {
namespace {

/// The fewest epochs after which residuals tell something, of a fit that takes exactly so many as it is told.
constexpr std::int64_t fewest_epochs_to_judge = 50;

const char* verb_of(const ImageOptions& options) { return options.searches_by_itself ? "crossval" : "image"; }

/// The data, which know then what of memory they may take beside the fit.
DataOptions& with_sample_memory(ImageOptions& options) {
  options.data.memory_for_samples = memory_for_samples(options);
  return options.data;
}

/// One run of `mpol image`, from the settings to the files.
class ImageRun {
 public:
  ImageRun(ImageOptions& options, const OptionSet& settings)
      : options_(options),
        grid_(choose_grid(with_sample_memory(options))),
        coords_(grid_.coords),
        chosen_(choose_device(options.data.device)),
        before_(options.resume ? run_to_resume(options.output.out) : std::nullopt),
        threads_(use_threads(threads_of_run())) {
    set_deterministic(options.deterministic);
    check_memory_for(1);  // before anything is read or allocated; again with the channels of the data
    options_.data.device = chosen_.names();
    options_.data.threads = threads_;
    record_.emplace(settings.recorded(), options_);
  }

  int run() {
    try {
      return go();
    } catch (const std::bad_alloc&) {
      throw out_of_memory();
    } catch (const c10::OutOfMemoryError&) {
      throw out_of_memory();
    }
  }

 private:
  int go() {
    if (options_.rank_timeout)
      ranks()->set_timeout(Communicator::Milliseconds(static_cast<std::int64_t>(std::ceil(*options_.rank_timeout * 1e3))));
    if (!options_.dry_run) exchange_on(device_);  // a dry run is that of the first rank alone
    if (!ranks()->is_first()) return assist();
    Agreement sharing;
    summary_.choices = choices();
    if (options_.dry_run) return show_choices();
    if (options_.resume && options_.structures.empty() && is_finished(options_.output.out, *record_, *options_.epochs))
      return already_finished();
    warn_of_changes();
    if (options_.output.speaks() && !grid_.choices.empty()) fmt::print("{}", choice_words(grid_.choices));
    OutputFolder folder(options_.output.out, existing(), "image");
    if (options_.resume && !folder.has_checkpoint() && !options_.output.quiet) {
      fmt::print(stderr, "mpol {}: {} has nothing to resume: the run starts anew\n", verb_of(options_),
                 options_.output.out.string());
    }
    summary_.seconds.start = seconds_since_start();
    read();
    share(sharing);
    calibrate_data(folder);
    if (summary_.blocks && summary_.blocks->found.interrupted) return interrupted_before_fit();
    grid();
    structures_ = marked_regions(options_, fit_data());
    stop_if_requested();
    fit(prepared_state(folder));
    if (slab_likelihood_) slab_likelihood_->release();
    if (ranked_likelihood_) ranked_likelihood_->release();
    if (summary_.scan && summary_.scan->interrupted) return interrupted_before_fit();
    if (summary_.fit.stop_reason == StopReason::interrupted) return interrupted(folder);
    const bool diverged = summary_.fit.stop_reason == StopReason::diverged;
    if (diverged && !options_.keep_diverged) return fail_diverged(folder);
    write(folder);
    return diverged ? report_divergence() : exit_done;
  }

  /// The part of every rank but the first: what is shared.
  int assist() {
    read();
    const auto way = Agreement::wait();
    if (way == 0) return exit_done;  // the first has nothing to do, or says why not
    sharding_.shard = static_cast<Shard>(way);
    if (sharding_.shard == Shard::none && !shares_folds()) return exit_done;
    if (shares_samples()) take_own_samples();
    grid();
    if (sharding_.shard == Shard::rows) serve_slabs(*slabs_);
    else if (shares_samples()) ranked_likelihood_->serve();
    else if (sharding_.shard == Shard::channels || shares_folds()) fit(text_of_first(std::string()));
    return exit_done;
  }

  /// Decides what the ranks share, tells them, and people.
  void share(Agreement& sharing) {
    const auto all = ranks()->size(), nchan = nchan_of_image();
    if (chosen_.are_several()) return share_with_devices(nchan);
    const ImageSize size{coords_.npix(), nchan, visibilities_->nvis()};
    sharding_ = choose_sharding(options_, size, all);
    if (all == 1) return;
    sharing.announce(static_cast<std::int64_t>(sharding_.shard));
    if (options_.output.speaks()) fmt::print("{}\n", plan_words(sharding_, options_, size, all));
    if (shares_samples()) take_own_samples();
  }

  void share_with_devices(std::int64_t nchan) {
    sharding_ = choose_sharding_of_devices(options_, nchan);
    team_.emplace(options_, chosen_.all, coords_.npix(), nchan);
    device_ = team_->first();
    if (options_.output.speaks()) fmt::print("{}\n", team_->words(sharding_, visibilities_->nvis()));
  }

  /// The folder of the run's state, made, and known to all ranks that take part in the fit.
  std::filesystem::path prepared_state(const OutputFolder& folder) const {
    std::error_code error;
    std::filesystem::create_directories(folder.state(), error);
    if (error) throw FileError(cannot_write(folder.state(), error.value()));
    if (sharding_.shard == Shard::channels || shares_folds()) text_of_first(folder.state().string());
    return folder.state();
  }

  /// Whether ranks go through samples of their own in each step.
  bool shares_samples() const { return !team_ && sharding_.shard == Shard::visibilities && options_.likelihood == "loose"; }

  /// Copies this rank's samples, if it has any. The first keeps all besides, for its products.
  void take_own_samples() {
    const auto share = share_of(visibilities_->nvis(), ranks()->rank(), ranks()->size());
    if (share.is_empty()) return;
    own_samples_ = visibilities_->select(at::arange(share.begin, share.end, torch::kInt64));
    if (!ranks()->is_first()) visibilities_ = own_samples_;
  }

  std::shared_ptr<RankedLikelihoodImpl> likelihood_of_ranks() const {
    const auto make = [this](const Visibilities& share) {
      return make_likelihood(options_, share, channels_, dataset_, device_);
    };
    return RankedLikelihood(ranks(), coords_, own_samples_, channels_, device_, make).ptr();
  }

  bool shares_folds() const {
    const bool searches = !options_.regularizers.searched.empty() && !options_.dry_run;
    return searches && !ranks()->is_alone() && options_.shard != "none";
  }

  std::int64_t nchan_of_image() const { return options_.mode == "continuum" ? 1 : visibilities_->nchan(); }

  /// All that nobody asked for and that decides the result, but for the weights of the regularisers (weigh_terms).
  std::vector<Choice> choices() const {
    auto all = grid_.choices;
    const auto optimizer = choose_optimizer(options_);
    if (options_.optimizer == "auto") all.push_back({"optimizer", to_string(optimizer.kind), optimizer.reason});
    if (optimizer.tolerance && !options_.tolerance) {
      all.push_back({"tolerance", fmt::format("{}", *optimizer.tolerance),
                     fmt::format("the fit goes on until it has converged, for at most {} epochs", *options_.epochs)});
    }
    if (chosen_.reason != "asked for") all.push_back({"device", chosen_.names(), chosen_.reason});
    return all;
  }

  /// --dry-run: what a run would do, without doing or writing it.
  int show_choices() {
    read();
    grid();
    for (auto& choice : lambda_choices(options_, fit_data(), size_.normaliser)) summary_.choices.push_back(std::move(choice));
    if (!options_.fit_blocks.empty()) summary_.choices.push_back(blocks_choice(options_));
    summary_.choices.push_back(noise_choice(options_, statistics_without_source(coords_, *visibilities_)));
    if (options_.output.json) fmt::print("{}", dry_summary(summary_));
    else if (!options_.output.quiet) fmt::print("{}", choice_words(summary_.choices));
    return exit_done;
  }

  Error out_of_memory() const { return cli::out_of_memory(estimate_, free_, options_, coords_.npix(), nchan_); }

  Existing existing() const {
    if (options_.resume) return Existing::resume;
    return options_.output.overwrite ? Existing::replace : Existing::refuse;
  }

  void check_memory_for(std::int64_t nchan) {
    estimate_ = fit_memory(options_, coords_.npix(), nchan, visibilities_ ? &*visibilities_ : nullptr, device_);
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

  /// A resumed run keeps the number of threads, on which bits depend, unless another one is asked for.
  std::optional<std::int64_t> threads_of_run() const {
    if (!options_.data.threads && !before_ && ranks_on_these_cpus() > 1)
      return std::max<std::int64_t>(available_cpus() / ranks_on_these_cpus(), 1);
    return options_.data.threads || !before_ ? options_.data.threads : before_->threads;
  }

  int already_finished() const {
    OutputFolder::remove_leftovers(options_.output.out);
    if (options_.output.json) {
      const std::ifstream summary(options_.output.out / "summary.json");
      std::cout << summary.rdbuf();
    } else if (!options_.output.quiet) {
      fmt::print("{} is finished: nothing to do (more --epochs continue it)\n", options_.output.out.string());
    }
    return exit_done;
  }

  void warn_of_changes() const {
    const auto& config = options_.output.config;
    if (const auto warning = config.empty() ? std::nullopt : changed_data(config, record_->data_digest())) log_warning(*warning);
    if (!before_) return;
    for (const auto& change : changes_since(*before_, options_)) log_warning(change);
    if (threads_ > available_cpus()) {
      log_warning(fmt::format("the run goes on with its {} threads on {} CPUs: other --threads need a new run", threads_,
                              available_cpus()));
    }
  }

  void read() {
    const Stopwatch watch(summary_.seconds.reading);
    visibilities_.emplace(grid_.take_visibilities(options_.data));
    check_grid_holds(*visibilities_, options_.data, coords_);
    check_representable(visibilities_->data(), visibilities_->weights(), options_.data.torch_dtype());
    check_no_hermitian_pairs(*visibilities_);
    if (const auto warning = field_warning(visibilities_->baselines(), coords_); !warning.empty()) log_warning(warning);
    stop_if_requested();
  }

  /// --fit-blocks: from here on the data are without the gains of their blocks.
  void calibrate_data(const OutputFolder& folder) {
    if (options_.fit_blocks.empty()) return;
    const Stopwatch watch(summary_.seconds.calibration);
    summary_.blocks = calibrate({options_, *record_, coords_, device_, prepared_state(folder)}, *visibilities_);
  }

  void grid() {
    const Stopwatch watch(summary_.seconds.gridding);
    const auto nchan = visibilities_->nchan();
    channels_ = options_.mode == "continuum" ? ChannelMap::continuum(nchan) : ChannelMap::cube(nchan);
    check_memory_for(most_channels());
    if (ranks()->is_first() || sharding_.shard == Shard::channels || shares_samples() || shares_folds()) average();
    stop_if_requested();
    make_likelihood_of_fit();
  }

  /// The most that are held in one memory.
  std::int64_t most_channels() const {
    const auto nchan = channels_.nchan();
    if (sharding_.shard != Shard::channels) return nchan;
    return team_ ? team_->most_channels() : share_of(nchan, 0, std::min(ranks()->size(), nchan)).size();
  }

  void average() {
    const DataAverager averager(coords_, *visibilities_,
                                DataAveragerOptions().channel_map(channels_).scatter_check(ScatterCheck::off));
    summary_.scatter = averager.scatter();
    dataset_ = averager.to_dataset();
    check_scatter();
  }

  /// Makes the likelihood of all data, by all ranks where they share the visibilities, or that of this rank's channels.
  void make_likelihood_of_fit() {
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
      ExactLikelihood exact(
          operator_of_ranks(coords_, *visibilities_, channels_, *ranks(), KernelStorage{options_.kernel_folder}));
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
  FitSize size_of_fit() const {
    const auto size = likelihood_ ? FitSize::of(likelihood_, options_) : FitSize();
    const bool known_to_first = !part_.holds_channels() && shares_folds();  // folds are weighed by numbers of the whole
    if (!part_.holds_channels() && !known_to_first) return size;
    const bool counts = part_.holds_channels() || ranks()->is_first();
    std::vector<double> numbers = {size.normaliser, static_cast<double>(size.samples), static_cast<double>(size.visibilities)};
    if (!counts) numbers.assign(numbers.size(), 0.0);
    ranks()->sum(numbers);
    if (options_.normalize == "none") numbers[0] = 0.5;
    return {numbers[0], static_cast<std::int64_t>(numbers[1]), static_cast<std::int64_t>(numbers[2])};
  }

  /// Doubts about the weights before the fit. One that stands still at its end is asked instead: see findings(). Only cell
  /// averages need right weights, and only they are refused for wrong ones.
  void check_scatter() {
    const bool gridded = options_.likelihood == "gridded";
    if (options_.scatter_check == "off" || (!gridded && choose_optimizer(options_).tolerance)) return;
    const auto warning = weights_warning(summary_.scatter, coords_, *visibilities_);
    if (warning.empty()) return;
    if (options_.scatter_check == "error" && gridded)
      throw DataError(warning + "; scale them with mpol weights, or use --scatter-check off");
    log_warning(warning);
    weights_are_doubted_ = true;
  }

  /// @param state  where the run keeps what it goes on from
  void fit(const std::filesystem::path& state) {
    auto* devices = team_ && devices_share_folds(options_) ? &team_->group() : nullptr;
    auto terms = weigh_terms({options_, fit_data(), size_.normaliser, size_.visibilities, likelihood_, device_, state,
                              shares_folds() ? ranks() : nullptr, devices, *record_, summary_});
    if (summary_.scan && summary_.scan->interrupted) return;
    if (part_.holds_channels() ? !part_.has_work() : !ranks()->is_first()) return;  // nothing to fit
    Stopwatch watch(summary_.seconds.training);
    const FitPlan plan{options_, *record_, state, std::move(terms), size_.normaliser, grid_.center};
    for (auto& line : regridding_words(options_, fit_data())) record_->note(std::move(line));
    auto fitted = team_ && team_->holds_channels() ? team_->fit(plan) : fit_part(plan, own_part());
    summary_.fit = std::move(fitted.result);
    sky_ = std::move(fitted.sky);
    if (!ranks()->is_first()) return;
    const torch::NoGradGuard no_gradient;
    describe_fit();
    watch.stop();
    if (fitted.ended()) doubt(fitted.model, *fitted.objective);
  }

  PartToFit own_part() const {
    if (part_.holds_channels()) return {data_of_part(), likelihood_, device_, part_.ranks()};
    return {fit_data(), likelihood_, device_};
  }

  /// Samples errors and judges structures, where that was asked for.
  void doubt(const GriddedNet& model, const Objective& objective) {
    if (!options_.samples && structures_.empty()) return;
    summary_.chi_squared_of_visibilities = chi_squared_of_visibilities();
    const double reduced = *summary_.chi_squared_of_visibilities / (2.0 * static_cast<double>(summary_.visibilities));
    judge_structures(structures_, model, objective, reduced, summary_);
    const Stopwatch watch(summary_.seconds.errors);
    errors_ = sample_errors(options_, fit_data(), model, objective, reduced);
  }

  void describe_fit() {
    summary_.likelihood = options_.likelihood;
    summary_.gaussian = options_.noise == "gaussian";
    summary_.normaliser = size_.normaliser;
    summary_.chi_squared = summary_.fit.loss.nll() * 2 * summary_.normaliser;
    summary_.center = grid_.center;
    summary_.samples = size_.samples;
    summary_.visibilities = size_.visibilities;
    summary_.cells = dataset_->ncells();
    const auto flux = (sky_.sum({-2, -1}) * coords_.cell_area()).contiguous();
    summary_.flux.assign(flux.const_data_ptr<double>(), flux.const_data_ptr<double>() + flux.numel());
    summary_.device = options_.data.device;
    summary_.dtype = options_.data.dtype;
    summary_.device_reason = chosen_.reason;
    summary_.ranks = ranks()->size();
    summary_.devices = static_cast<std::int64_t>(chosen_.all.size());
    summary_.shard = to_string(sharding_.shard);
    summary_.seed = options_.seed;
    const auto chosen = choose_optimizer(options_);
    summary_.optimizer = to_string(chosen.kind);
    summary_.optimizer_reason = chosen.reason;
  }

  void describe_residuals(const DirtyProducts& dirty) {
    for (std::int64_t channel = 0; channel < dirty.residual.size(0); ++channel) {
      const auto residual = dirty.residual[channel];
      const double noise = dirty.noise[static_cast<std::size_t>(channel)], rms = residual.square().mean().sqrt().item<double>();
      summary_.residuals.push_back({.noise = noise, .rms = rms, .peak = residual.abs().max().item<double>()});
    }
  }

  FitData data_of_part() const { return {part_.visibilities(), part_.map(), part_.dataset(), FitData::imaging_of(options_)}; }

  FitData fit_data() const {
    return {*visibilities_, channels_, dataset_, FitData::imaging_of(options_),
            options_.data.parts->ranges(visibilities_->nvis())};
  }

  double chi_squared_of_visibilities() const {
    if (options_.likelihood != "gridded" && options_.noise == "gaussian") return summary_.chi_squared;
    return losses::loose_chi_squared(coords_, sky_, *visibilities_, channels_);
  }

  void write(OutputFolder& folder) {
    const auto begin = seconds_since_start();
    if (!summary_.chi_squared_of_visibilities) summary_.chi_squared_of_visibilities = chi_squared_of_visibilities();
    ImageResults results{.coords = coords_,
                         .sky = sky_,
                         .dirty = dirty_products(fit_data(), sky_),
                         .frequencies = image_frequencies(*visibilities_, dataset_->nchan()),
                         .visibilities = *visibilities_,
                         .scan = summary_.scan,
                         .structures = structures_};
    describe_residuals(results.dirty);
    summary_.parts = results.dirty.remainder.parts;
    add_errors(errors_, options_, results, summary_);
    const auto facts = judge(results.dirty);
    stage_images(folder, results, summary_.fit, options_, *record_);
    if (summary_.blocks) write_file_atomically(folder.staged("blocks.csv"), blocks_csv(*summary_.blocks));
    summary_.seconds.writing = seconds_since_start() - begin;
    summary_.seconds.total = seconds_since_start();
    summary_.estimated_memory = estimate_.total();
    summary_.samples_on_disk = disk_of_samples(*visibilities_);
    stage_report(folder, facts, results.dirty.beams);
    stage_texts(folder, summary_, *record_);
    replace_earlier(folder);
    folder.commit();
    if (options_.output.json) fmt::print("{}", summary_json(summary_));
    else if (!options_.output.quiet) fmt::print("{}", closing_words(summary_, folder.path().string(), warnings_so_far().size()));
  }

  /// Measures the fit and warns of what speaks against it.
  FitFacts judge(const DirtyProducts& dirty) {
    if (summary_.blocks) judge_blocks(*summary_.blocks, fit_data(), sky_);
    auto facts = measure_fit(fit_data(), sky_, dirty);
    facts.noise = options_.noise;
    facts.settled = summary_.fit.stop_reason == StopReason::converged ||
                    (summary_.fit.warnings.empty() && summary_.fit.epochs >= fewest_epochs_to_judge);
    facts.weights_were_doubted = weights_are_doubted_;
    for (const auto& finding : findings(facts)) log_warning(finding.text());
    if (const auto warning = bound_warning(summary_); !warning.empty()) log_warning(warning);
    return facts;
  }

  void stage_report(OutputFolder& folder, const FitFacts& facts, const std::vector<Beam>& beams) const {
    const ReportContent content{.summary = summary_,
                                .facts = facts,
                                .visibilities = *visibilities_,
                                .name = options_.data.data.filename().string(),
                                .uv_unit = uv_unit_name(options_.data),
                                .beams = beams,
                                .command = command_line(),
                                .settings = record_->settings(),
                                .warnings = warnings_so_far(),
                                .readings = readings_so_far(),
                                .folder = folder.staged("report.html").parent_path()};
    write_file_atomically(folder.staged("report.html"), report_html(content));
  }

  /// What an earlier run in OUT wrote and this one does not: channels as files of their own, diagnostics.
  void replace_earlier(OutputFolder& folder) const {
    if (folder.keeps_earlier_results()) {
      for (const auto& name : earlier_files(folder.path())) folder.replaces(name);
      if (!summary_.scan) folder.replaces(scan_name);
      if (!summary_.blocks) folder.replaces(blocks_name);
    }
    const bool figures = options_.diagnostics_interval || (before_ && before_->had_diagnostics());
    const bool events = options_.tensorboard || (before_ && before_->had_events());
    for (const auto& name : diagnostics_files(folder.path())) {
      if (!(is_of_events(name) ? events : figures)) folder.replaces(name);
    }
  }

  /// The history of a fit without results. Those of an earlier run that is being replaced stay as they are.
  void keep_history(OutputFolder& folder) const {
    if (folder.keeps_earlier_results()) {
      write_history_csv(folder.state() / "history.csv", summary_.fit);
    } else {
      stage_record(folder, summary_.fit, *record_, earlier_files(folder.path()));
      folder.commit();
    }
  }

  int interrupted(OutputFolder& folder) const {
    keep_history(folder);
    const auto& fit = summary_.fit;
    if (!fit.checkpoint_failure.empty()) {
      throw FileError(fmt::format("interrupted after {} epochs, but the newest checkpoint is of {}: {}", fit.epochs,
                                  fit.checkpoint_epochs, fit.checkpoint_failure));
    }
    if (!options_.output.quiet) {
      fmt::print(stderr, "mpol {}: interrupted after {} epochs; --resume continues\n", verb_of(options_), fit.epochs);
    }
    return 128 + (stop_requested() != 0 ? stop_requested() : SIGTERM);  // or another rank was told to
  }

  int interrupted_before_fit() const {
    const auto done = summary_.scan ? fmt::format("{} points of the cross-validation", summary_.scan->points.size())
                                    : fmt::format("{} rounds of the calibration", summary_.blocks->found.rounds);
    if (!options_.output.quiet)
      fmt::print(stderr, "mpol {}: interrupted after {}; the same command with --resume continues\n", verb_of(options_), done);
    return 128 + (stop_requested() != 0 ? stop_requested() : SIGTERM);
  }

  int fail_diverged(OutputFolder& folder) const {
    keep_history(folder);
    return report_divergence();
  }

  int report_divergence() const { throw DivergedError(summary_.fit.diagnosis); }

  ImageOptions& options_;
  ChosenGrid grid_;
  GridCoords coords_;
  ChosenDevice chosen_;
  torch::Device device_ = chosen_.device;
  std::optional<ResumedRun> before_;
  std::int64_t threads_;
  std::optional<RunRecord> record_;
  MemoryEstimate estimate_;
  std::optional<double> free_;  // when the estimate was made, bytes
  std::int64_t nchan_ = 1;      // that it is for

  std::optional<Visibilities> visibilities_;
  std::optional<Visibilities> own_samples_;  // of this rank, where they share them in each step
  ChannelMap channels_;
  GriddedDataset dataset_{nullptr};                          // float64, on the CPU
  Sharding sharding_;                                        // of the ranks
  ChannelPart part_;                                         // this rank's channels, where they share them
  std::optional<DeviceTeam> team_;                           // of several devices of this process
  std::shared_ptr<SlabOperator> slabs_;                      // this rank's rows, where they share them
  std::shared_ptr<SlabLikelihoodImpl> slab_likelihood_;      // of the first rank with all of them
  std::shared_ptr<RankedLikelihoodImpl> ranked_likelihood_;  // where ranks share the samples in each step
  std::shared_ptr<Likelihood> likelihood_;                   // of what this rank fits; empty where it fits nothing
  FitSize size_;
  std::optional<SampledErrors> errors_;
  std::vector<JudgedRegion> structures_;
  Tensor sky_;                        // (nchan, npix, npix) float64, on the CPU, Jy/arcsec^2
  bool weights_are_doubted_ = false;  // before the fit, in words
  ImageSummary summary_;
};

}  // namespace

int run_image(ImageOptions& options, const OptionSet& settings) {
  settle(options);
  settings.check_meaning();
  check_fit_blocks(options);
  if (!ranks()->is_first()) {
    options.output.quiet = true;
    options.output.json = false;
  }
  listen_to_library(verb_of(options), options.output);
  return ImageRun(options, settings).run();
}

}  // namespace mpol::cli
