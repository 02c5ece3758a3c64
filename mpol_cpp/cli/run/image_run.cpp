#include <mpol_cpp/cli/run/image_run.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iostream>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/image/noise_choice.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/cli/image/weight_check.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/stopwatch.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/program/run_environment.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/run/block_stage.h>
#include <mpol_cpp/cli/run/fit_terms.h>
#include <mpol_cpp/cli/run/part_errors.h>
#include <mpol_cpp/cli/run/part_fit.h>
#include <mpol_cpp/cli/run/point_stage.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/cli/run/run_data.h>
#include <mpol_cpp/cli/run/run_files.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/device/precision.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/train/trainer.h>

namespace mpol::cli {
namespace {

const char* verb_of(const ImageOptions& options) { return options.searches_by_itself ? "crossval" : "image"; }

/// One run of `mpol image`, from the settings to the files.
class ImageRun {
 public:
  ImageRun(ImageOptions& options, const OptionSet& settings)
      : options_(options),
        data_(options, summary_),
        before_(options.resume ? run_to_resume(options.output.out) : std::nullopt),
        threads_(use_threads(threads_of_run())) {
    set_deterministic(options.deterministic);
    data_.check_memory_for({1});  // before anything is read or allocated; again with the channels of the data
    options_.data.device = data_.chosen_device().names();
    options_.data.threads = threads_;
    record_.emplace(settings.recorded(), options_);
    if (data_.shares_folds() || (ranks()->is_first() && !may_share_digest())) record_->digest_data();
  }

  int run() {
    try {
      return go();
    } catch (const std::bad_alloc&) {
      throw data_.out_of_memory();
    } catch (const c10::OutOfMemoryError&) {
      throw data_.out_of_memory();
    }
  }

 private:
  int go() {
    if (!options_.dry_run) {  // which is that of the first rank alone
      exchange_on(data_.device());
      if (weighs_exchange(options_)) measure_exchange_on(data_.device());
    }
    if (!ranks()->is_first()) return assist();
    Agreement sharing;
    if (options_.dry_run) return show_choices();
    if (options_.resume && options_.structures.empty() && is_finished(options_.output.out, *record_, *options_.epochs))
      return already_finished();
    warn_of_changes();
    const auto& grid_choices = data_.chosen_grid().choices;
    if (options_.output.speaks() && !grid_choices.empty()) fmt::print("{}", choice_words(grid_choices));
    OutputFolder folder(options_.output.out, existing(), "image");
    if (options_.resume && !folder.has_checkpoint() && !options_.output.quiet) {
      fmt::print(stderr, "mpol {}: {} has nothing to resume: the run starts anew\n", verb_of(options_),
                 options_.output.out.string());
    }
    summary_.seconds.start = seconds_since_start();
    data_.read_and_share(sharing, before_ ? std::optional(before_->channels_at_once.value_or(0)) : std::nullopt,
                         [this] { digest_once_decided(); });
    summary_.choices = choices();
    if (const auto& sign = data_.chosen_sign(); sign && options_.output.speaks()) fmt::print("{}", choice_words({*sign}));
    calibrate_data(folder);
    if (summary_.blocks && summary_.blocks->found.interrupted) return interrupted_before_fit();
    take_points_out(folder);
    if (summary_.points && summary_.points->found.interrupted) return interrupted_before_fit();
    data_.average_and_make_likelihood();
    outcome_.structures = marked_regions(options_, data_.target());
    stop_if_requested();
    fit(prepared_state(folder));
    data_.release_ranks();
    if (summary_.scan && summary_.scan->interrupted) return interrupted_before_fit();
    if (summary_.fit.stop_reason == StopReason::interrupted) return interrupted(folder);
    const bool diverged = summary_.fit.stop_reason == StopReason::diverged;
    if (diverged && !options_.keep_diverged) files().keep_history(folder);
    else files().write(folder, outcome_);
    if (diverged) throw DivergedError(summary_.fit.diagnosis);
    return exit_done;
  }

  /// The part of every rank but the first: what is shared.
  int assist() {
    if (!data_.get_share([this] { digest_once_decided(); })) return exit_done;
    data_.average_and_make_likelihood();
    if (data_.is_served_by_ranks()) data_.serve();
    else if (data_.shares_products()) data_.help_with_products();
    else if (data_.sharding().shard == Shard::channels || data_.shares_folds()) fit(text_of_first(std::string()));
    return exit_done;
  }

  /// The folder of the run's state, made, and known to all ranks that take part in the fit.
  std::filesystem::path prepared_state(const OutputFolder& folder) const {
    make_folder(folder.state());
    if (data_.sharding().shard == Shard::channels || data_.shares_folds()) text_of_first(folder.state().string());
    return folder.state();
  }

  static void make_folder(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw FileError(cannot_write(path, error.value()));
  }

  /// All that nobody asked for and that decides the result, but for the weights of the regularisers (weigh_terms).
  std::vector<Choice> choices() const {
    auto all = data_.chosen_grid().choices;
    if (data_.chosen_sign()) all.push_back(*data_.chosen_sign());
    const auto optimizer = choose_optimizer(options_);
    if (!options_.optimizer) all.push_back({"optimizer", to_string(optimizer.kind), optimizer.reason});
    if (optimizer.tolerance && !options_.tolerance) {
      all.push_back({"tolerance", fmt::format("{}", *optimizer.tolerance),
                     fmt::format("the fit goes on until it has converged, for at most {} epochs", *options_.epochs)});
    }
    const auto& device = data_.chosen_device();
    if (!device.is_asked_for) all.push_back({"device", device.names(), device.reason});
    return all;
  }

  /// --dry-run: what a run would do, without doing or writing it.
  int show_choices() {
    data_.read();
    summary_.choices = choices();
    data_.average_and_make_likelihood();
    const auto look = data_.first_look();
    for (auto& choice : lambda_choices(options_, look, data_.noise(look.weights.sum), data_.coords()))
      summary_.choices.push_back(std::move(choice));
    if (!options_.fit_blocks.empty()) summary_.choices.push_back(blocks_choice(options_));
    if (!options_.points.empty()) summary_.choices.push_back(points_choice(options_));
    summary_.choices.push_back(noise_choice(options_, statistics_without_source(data_.coords(), data_.visibilities())));
    if (options_.output.json) fmt::print("{}", dry_summary(summary_));
    else if (!options_.output.quiet) fmt::print("{}", choice_words(summary_.choices));
    return exit_done;
  }

  Existing existing() const {
    if (options_.resume) return Existing::resume;
    return options_.output.overwrite ? Existing::replace : Existing::refuse;
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

  /// --fit-blocks: from here on the data are without the gains of their blocks.
  void calibrate_data(const OutputFolder& folder) {
    if (options_.fit_blocks.empty()) return;
    const Stopwatch watch(summary_.seconds.calibration);
    summary_.blocks =
        calibrate({options_, *record_, data_.coords(), data_.device(), prepared_state(folder)}, data_.visibilities());
  }

  /// --points: from here on the data are without point sources.
  void take_points_out(const OutputFolder& folder) {
    if (options_.points.empty()) return;
    const Stopwatch watch(summary_.seconds.points);
    summary_.points =
        fit_points_of({options_, *record_, data_.coords(), data_.device(), prepared_state(folder)}, data_.visibilities());
  }

  /// @param state  where the run keeps what it goes on from
  void fit(const std::filesystem::path& state) {
    auto* team = data_.team();
    auto* devices = team != nullptr && devices_share_folds(options_) ? &team->group() : nullptr;
    const auto& size = data_.size();
    std::vector<Term> terms;
    std::optional<TermWeighing> weighing;
    const bool weighs = ranks()->is_first() || data_.shares_folds();
    if (weighs || data_.looks_at_own_channels()) summary_.take(data_.first_look());
    if (weighs) {
      weighing.emplace(TermWeighing{options_, data_.fit_data(), data_.coords(), data_.noise(summary_.weights.sum), size,
                                    data_.likelihood(), data_.device(), state, data_.shares_folds() ? ranks() : nullptr, devices,
                                    *record_, summary_});
      terms = weigh_terms(*weighing);
    }
    if (summary_.scan && summary_.scan->interrupted) return;
    auto peaks = weights_follow_fit(options_) ? std::optional(summary_.peaks) : std::nullopt;
    if (data_.sharding().shard == Shard::channels && !data_.shares_folds()) {
      terms = terms_of_first(options_, std::move(terms));
      if (peaks) {
        const auto [brightest, darkest, on_any_scale, share] =
            numbers_of_first<4>({peaks->brightest, peaks->darkest, peaks->on_any_scale, peaks->share_on_scale});
        peaks = DirtyPeaks{brightest, darkest, on_any_scale, share};
      }
      summary_.signals = signals_of_first(summary_.signals);
      if (shares_digest()) record_->gather_digest(*ranks());
      auto digest = text_of_first(ranks()->is_first() ? record_->data_digest() : std::string());
      if (!ranks()->is_first()) record_->set_data_digest(std::move(digest));
      data_.end_patience();
    }
    FitPlan plan{options_, *record_,         state,           std::move(terms),
                 peaks,    summary_.signals, size.normalizer, data_.chosen_grid().center};
    if (ranks()->is_first()) {
      for (auto& line : regridding_words(options_, data_.target())) record_->note(std::move(line));
    }
    const auto beams = beams_for_errors();
    if (data_.groups().are_several()) return fit_groups(std::move(plan), weighing, beams);
    if (!has_work()) return;
    Stopwatch watch(summary_.seconds.training);
    auto fitted = fit_held_channels(plan);
    const bool is_written = has_results(fitted);
    note_traits_of(fitted, weighing);
    summary_.fit = fitted.result;
    outcome_.sky = std::move(fitted.sky);
    watch.stop();
    const torch::NoGradGuard no_gradient;
    CubeErrors errors(data_.groups().nchan());
    const bool has_errors = doubt_held_channels(fitted, beams, 0, errors);
    if (const auto& part = data_.channel_part(); is_written && part.holds_channels() && !part.ranks()->is_alone()) {
      const Stopwatch products(summary_.seconds.writing);
      outcome_.dirty = data_.products_of_ranks(fitted.model->make_sky());
    }
    if (!ranks()->is_first()) return;
    describe_fit();
    if (has_errors) take(std::move(errors));
    if (fitted.ended() && !shares_channels()) doubt(fitted);
    if (is_written && data_.shares_products()) {
      const Stopwatch products(summary_.seconds.writing);
      outcome_.dirty = data_.products_with_others(outcome_.sky);
    }
  }

  /// Whether ranks may find the digest of the data together: a run that goes on, or begins with settings of another one, compares
  /// it before there are any shares.
  bool may_share_digest() const { return !ranks()->is_alone() && !options_.resume && options_.output.config.empty(); }
  /// Whether they do, once it is decided what each reads.
  bool shares_digest() const { return may_share_digest() && data_.looks_at_own_channels(); }
  /// Begins what of the digest this rank finds, unless it has begun.
  void digest_once_decided() {
    if (record_->knows_data()) return;
    if (shares_digest()) record_->digest_share(*ranks(), threads_);
    else if (ranks()->is_first()) record_->digest_data();
  }

  /// Whether ranks or devices fit channels of their own.
  bool shares_channels() const { return data_.sharding().shard == Shard::channels; }

  /// Whether they do, or groups of channels are fitted one after another.
  bool fits_channels_apart() const { return shares_channels() || data_.groups().are_several(); }

  /// The beams by which errors of channels that are sampled apart become maps; nothing where none are. Of all ranks that share
  /// channels.
  std::vector<Beam> beams_for_errors() {
    if (!fits_channels_apart() || !(asks_for_samples(options_) || samples_usual_errors(options_))) return {};
    const Stopwatch watch(summary_.seconds.errors);
    return data_.beams_of_channels();
  }

  /// Samples the errors of the channels that are held where they are a part of a cube. @return whether it did
  /// @param beams  those for errors  @param first  of the channels
  /// @param state  of a group of channels, which keeps its errors there; null: there is one group
  bool doubt_held_channels(const FittedPart& fitted, const std::vector<Beam>& beams, std::int64_t first, CubeErrors& errors,
                           const std::filesystem::path* state = nullptr) {
    if (!fits_channels_apart()) return false;
    if (options_.samples ? !asks_for_samples(options_) || !fitted.ended() : !samples_usual_errors_of(fitted)) return false;
    const Stopwatch watch(summary_.seconds.errors);
    const auto epochs = fitted.result.epochs;
    auto kept = state != nullptr && ranks()->is_first() ? kept_errors(*state, options_, epochs) : std::nullopt;
    const bool has_to = !on_any_rank_of_part(kept.has_value());
    auto found = has_to ? errors_of_held_channels(fitted, beams) : std::move(kept).value_or(PartErrors());
    if (!ranks()->is_first()) return true;
    if (has_to && state != nullptr) keep_errors(*state, found, options_, epochs);
    errors.add(std::move(found), first);
    return true;
  }

  PartErrors errors_of_held_channels(const FittedPart& fitted, const std::vector<Beam>& beams) {
    auto* team = data_.team();
    return team != nullptr && team->holds_channels() ? team->errors(beams)
                                                     : errors_of_part(options_, data_.own_part(), fitted, beams);
  }

  /// Whether it is so on any of the ranks that fit channels together.
  bool on_any_rank_of_part(bool here) const {
    const auto& part = data_.channel_part().ranks();
    return part ? part->any(here) : here;
  }

  /// The same of all ranks that fit channels together.
  bool samples_usual_errors_of(const FittedPart& fitted) {
    summary_.why_no_errors = why_no_usual_errors(fitted);
    if (!on_any_rank_of_part(!summary_.why_no_errors.empty())) return true;
    if (summary_.why_no_errors.empty()) summary_.why_no_errors = "a rank has no memory for them";  // the one reason of one alone
    return false;
  }

  void take(CubeErrors errors) {
    if (!summary_.noise && asks_for_samples(options_)) summary_.noise = errors.noise();
    outcome_.errors = std::move(errors).mapped(options_);
  }

  /// Whether a fit becomes files.
  bool has_results(const FittedPart& fitted) const {
    return fitted.ended() || (fitted.result.stop_reason == StopReason::diverged && options_.keep_diverged);
  }

  /// Whether this rank fits any channel of those that are held.
  bool has_work() const {
    const auto& part = data_.channel_part();
    return part.holds_channels() ? part.has_work() : ranks()->is_first();
  }

  FittedPart fit_held_channels(const FitPlan& plan) {
    auto* team = data_.team();
    return team != nullptr && team->holds_channels() ? team->fit(plan) : fit_part(plan, data_.own_part());
  }

  /// Fits groups of channels one after another, up to the first that does not reach its end.
  void fit_groups(FitPlan plan, const std::optional<TermWeighing>& weighing, const std::vector<Beam>& beams) {
    const auto& groups = data_.groups();
    const auto state = plan.state;
    const bool gathers = ranks()->is_first();
    if (gathers) outcome_.sky = at::zeros({groups.nchan(), data_.coords().npix(), data_.coords().npix()}, torch::kFloat64);
    GroupedResult result;
    FittedPart whole;  // its terms and what fits have shown, where channels have weights of their own
    whole.terms = plan.terms;
    std::vector<FitNoise> noises;  // of each channel that has been fitted
    CubeErrors errors(groups.nchan());
    bool have_errors = true;  // all groups up to now
    if (gathers && !options_.resume) remove_group_errors(state);
    plan.channels_at_once = groups.at_once();
    for (const auto& group : groups.all()) {
      data_.hold_group(group);
      Stopwatch watch(summary_.seconds.training);
      plan.label = groups.words_of(group);
      plan.state = groups.state_of(group, state);
      if (gathers) make_folder(plan.state);
      if (gathers && options_.output.speaks()) fmt::print("{}:\n", plan.label);
      bool goes_on = true;
      if (has_work()) {
        auto fitted = fit_held_channels(plan);
        goes_on = has_results(fitted);
        if (plan.signals.empty()) {
          if (fitted.traits) plan.terms = fitted.terms;
          note_traits_of(fitted, weighing);
        } else {
          gather_weights_of(fitted, group, whole);
          noises.insert(noises.end(), static_cast<std::size_t>(group.size()), fitted.traits ? fitted.traits->noise : FitNoise());
        }
        if (gathers) outcome_.sky.slice(0, group.begin, group.end).copy_(fitted.sky);
        result.add(fitted.result);
        watch.stop();
        have_errors = goes_on && have_errors && doubt_held_channels(fitted, beams, group.begin, errors, &plan.state);
      }
      if (plan.signals.empty()) plan.peaks.reset();  // what the first group shows is that of all
      if (ranks()->any(!goes_on)) break;
    }
    if (!gathers) return;
    if (whole.traits) whole.traits->noise = pooled_noise(noises);
    note_traits_of(whole, weighing);
    summary_.fit = result.whole();
    if (have_errors) take(std::move(errors));
    interrupted_after_ = fmt::format("{} epochs of {}", result.newest_epochs(), plan.label);
    describe_fit();
  }

  /// Tells of weights that were set anew for what a fit has shown.
  void note_traits_of(const FittedPart& fitted, const std::optional<TermWeighing>& weighing) {
    if (!fitted.traits || fitted.traits->ask_for_weights_of(FitTraits()) || !weighing) return;
    if (const auto& noise = fitted.traits->noise; noise.factor() != 1) summary_.noise = noise;
    if (fitted.traits->follows_source()) summary_.filled = fitted.traits->filled;
    note_terms_anew(fitted.terms, *weighing);
  }

  /// Puts together, channel by channel, what the fits of groups were weighed by, and have shown.
  void gather_weights_of(const FittedPart& fitted, const Share& group, FittedPart& whole) const {
    for (std::size_t i = 0; i < whole.terms.size(); ++i)
      whole.terms[i] = with_channels_of(whole.terms[i], fitted.terms[i], group);
    if (!fitted.traits) return;
    if (!whole.traits) whole.traits.emplace().filled.assign(summary_.signals.size(), usual_filled);
    const auto& filled = fitted.traits->filled;
    for (auto c = static_cast<std::size_t>(group.begin); c < std::min(static_cast<std::size_t>(group.end), filled.size()); ++c)
      whole.traits->filled[c] = filled[c];
  }

  /// Samples errors of all channels together, and judges structures where that was asked for.
  void doubt(const FittedPart& fitted) {
    const auto& model = fitted.model;
    const auto& objective = *fitted.objective;
    if (!options_.samples) summary_.why_no_errors = why_no_usual_errors(fitted);
    const bool has_errors = options_.samples ? asks_for_samples(options_) : summary_.why_no_errors.empty();
    const bool has_regions = !outcome_.structures.empty();
    if (!has_errors && !has_regions) return;
    summary_.chi_squared_of_visibilities = chi_squared_of_visibilities(options_, data_, outcome_.sky, summary_);
    const double reduced = *summary_.chi_squared_of_visibilities / (2.0 * static_cast<double>(summary_.visibilities));
    Stopwatch watch(summary_.seconds.errors);
    const auto data = data_.fit_data();
    const auto draws = asks_for_samples(options_) ? NoiseDraws::of_samples : NoiseDraws::of_cells;
    const auto noise = measured_noise(options_, data, model, objective, reduced, SharedErrors::twice, draws);
    if (!summary_.noise && (asks_for_samples(options_) || has_regions))
      summary_.noise = noise;  // else what the weights were set anew for
    if (has_errors) outcome_.samples = sample_errors(options_, data, model, objective, noise.factor(), summary_.fit.epochs);
    watch.stop();
    judge_structures(outcome_.structures, model, objective, noise.factor(), summary_);
  }

  /// Why a run that was not asked for errors has none of what is fitted; empty where it samples some.
  std::string why_no_usual_errors(const FittedPart& fitted) {
    if (const auto optimizer = choose_optimizer(options_); !optimizer.is_convex())
      return fmt::format("errors are sampled of fits by pogm, fista or admm, not by {}", to_string(optimizer.kind));
    if (auto why = Bootstrap::obstacle(*fitted.model.ptr(), *fitted.objective); !why.empty()) return why;
    const auto& part = data_.channel_part().ranks();
    const bool several = data_.team() != nullptr || (part && !part->is_alone());
    if (const auto term = joining_term(options_); !term.empty() && shares_channels() && several)
      return fmt::format("{} joins channels, which were shared", term);
    if (fitted.result.stop_reason != StopReason::converged) return "the fit has not converged";
    return data_.make_room_for_usual_errors() ? std::string() : "they would need more memory than there is";
  }

  void describe_fit() {
    summary_.likelihood = options_.likelihood;
    summary_.of_cells = options_.likelihood_kind().of_cells;
    summary_.gaussian = options_.is_gaussian();
    summary_.normalizer = data_.size().normalizer;
    summary_.chi_squared = summary_.fit.loss.nll() * 2 * summary_.normalizer;
    summary_.center = data_.chosen_grid().center;
    summary_.stokes = data_.outline().observation.stokes;
    summary_.samples = data_.size().samples;
    summary_.visibilities = data_.size().visibilities;
    summary_.cells = data_.size().cells;
    const auto flux = (outcome_.sky.sum({-2, -1}) * data_.coords().cell_area()).contiguous();
    summary_.flux.assign(flux.const_data_ptr<double>(), flux.const_data_ptr<double>() + flux.numel());
    summary_.device = options_.data.device;
    summary_.dtype = options_.data.dtype;
    summary_.device_reason = data_.chosen_device().reason;
    summary_.ranks = ranks()->size();
    summary_.devices = static_cast<std::int64_t>(data_.chosen_device().all.size());
    summary_.shard = data_.sharding().shard;
    summary_.seed = options_.seed;
    const auto chosen = choose_optimizer(options_);
    summary_.optimizer = chosen.kind;
    summary_.optimizer_reason = chosen.reason;
    summary_.optimizer_is_asked_for = options_.optimizer.has_value();
  }

  int interrupted(OutputFolder& folder) {
    files().keep_history(folder);
    const auto& fit = summary_.fit;
    const auto after = interrupted_after_.empty() ? fmt::format("{} epochs", fit.epochs) : interrupted_after_;
    if (!fit.checkpoint_failure.empty()) {
      throw FileError(fmt::format("interrupted after {}, but the newest checkpoint is of {}: {}", after, fit.checkpoint_epochs,
                                  fit.checkpoint_failure));
    }
    if (!options_.output.quiet)
      fmt::print(stderr, "mpol {}: interrupted after {}; --resume continues\n", verb_of(options_), after);
    return 128 + (stop_requested() != 0 ? stop_requested() : SIGTERM);  // or another rank was told to
  }

  int interrupted_before_fit() const {
    const auto done = summary_.scan     ? fmt::format("{} points of the cross-validation", summary_.scan->points.size())
                      : summary_.points ? fmt::format("{} rounds of the point sources", summary_.points->found.rounds)
                                        : fmt::format("{} rounds of the calibration", summary_.blocks->found.rounds);
    if (!options_.output.quiet)
      fmt::print(stderr, "mpol {}: interrupted after {}; the same command with --resume continues\n", verb_of(options_), done);
    return 128 + (stop_requested() != 0 ? stop_requested() : SIGTERM);
  }

  RunFiles files() { return {options_, *record_, data_, before_, summary_}; }

  ImageOptions& options_;
  ImageSummary summary_;
  RunData data_;
  std::optional<ResumedRun> before_;
  std::int64_t threads_;
  std::optional<RunRecord> record_;
  FitOutcome outcome_;
  std::string interrupted_after_;  // of a fit in groups: how far the newest is
};

}  // namespace

int run_image(ImageOptions& options, const OptionSet& settings) {
  settle(options);
  settings.check_meaning();
  check_fit_blocks(options);
  check_points(options);
  if (!ranks()->is_first()) {
    options.output.quiet = true;
    options.output.json = false;
  }
  listen_to_library(verb_of(options), options.output);
  if (options.rank_timeout)
    ranks()->set_timeout(Communicator::Milliseconds(static_cast<std::int64_t>(std::ceil(*options.rank_timeout * 1e3))));
  return ImageRun(options, settings).run();
}

}  // namespace mpol::cli
