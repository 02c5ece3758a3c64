#include <mpol_cpp/cli/run/part_fit.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/fit_diagnostics.h>
#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/run/fit_events.h>
#include <mpol_cpp/cli/run/fit_terms.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/progress_report.h>
#include <mpol_cpp/train/usual_image.h>

namespace mpol::cli {
namespace {

bool speaks(const ImageOptions& options, const PartToFit& part) {
  return options.output.speaks() && (!part.ranks || part.ranks->is_first());
}

ProgressReportOptions report_options(const ImageOptions& options, const PartToFit& part) {
  // stderr is for warnings and the one line of an error
  return ProgressReportOptions()
      .style(speaks(options, part) ? ReportStyle::automatic : ReportStyle::silent)
      .stream(stdout)
      .open_end(choose_optimizer(options).tolerance.has_value());
}

/// What is called during a fit besides its report.
class Watchers {
 public:
  Watchers(const FitPlan& plan, const Objective& objective, GriddedNet& model, TrainOptions& train,
           std::vector<Callback>& callbacks) {
    const auto& options = plan.options;
    if (options.diagnostics_interval) {
      diagnostics_.emplace(options.output.out, *options.diagnostics_interval, objective, *model.ptr(), train.checkpoint(),
                           plan.center);
      callbacks.push_back(diagnostics_->callback());
      train.model_interval(*options.diagnostics_interval);
    }
    if (options.tensorboard) {
      events_.emplace(options.output.out);
      callbacks.push_back(events_->callback());
      train.model_interval(std::gcd(options.diagnostics_interval.value_or(0), FitEvents::interval));
    }
  }
  /// After a fit that has ended, not of an interrupted one, which goes on as if it never was.
  void finish(GriddedNetImpl& model) {
    if (diagnostics_) diagnostics_->finish(model);
  }

 private:
  std::optional<FitDiagnostics> diagnostics_;
  std::optional<FitEvents> events_;
};

/// The image of all channels on the first rank.
Tensor sky_of(ImageModel& model, const PartToFit& part) {
  const torch::NoGradGuard no_gradient;
  const auto sky = model.make_sky().detach();
  if (!part.ranks) return sky.to(torch::kCPU, torch::kFloat64);
  const auto place = part.ranks->takes(sky.device()) ? sky.device() : torch::Device(torch::kCPU);
  const auto all = part.ranks->gather(sky.to(place, torch::kFloat64).contiguous());
  return all.defined() ? all.to(torch::kCPU) : all;
}

/// The terms with weights that suit what a first fit has shown.
std::vector<Term> terms_for(const FitTraits& traits, const FitPlan& plan) {
  return terms_for_traits(plan.terms, plan.options, plan.peaks->brightest, plan.signals, traits);
}

/// Whether whoever gave weights has left nothing to set anew.
bool have_same_weights(const std::vector<Term>& some, const std::vector<Term>& others) {
  return std::ranges::equal(some, others, weigh_alike);
}

/// Those of a part's channels.
std::vector<Term> terms_of_part(std::vector<Term> terms, const PartToFit& part) {
  const auto begin = part.place.first, end = begin + part.data.channels.nchan();
  for (auto& term : terms) {
    if (const auto& all = term.channel_factors(); !all.empty())
      term = term.with_channel_factors({all.begin() + begin, all.begin() + end});
  }
  return terms;
}

/// What a fit of visibilities that has ended leaves of them, chi^2/(2 N) over all ranks.
double reduced_chi_squared(const FittedPart& fitted, const PartToFit& part) {
  std::vector<double> visibilities{static_cast<double>(part.likelihood->visibilities_count())};
  if (part.ranks) part.ranks->sum(visibilities);
  return fitted.result.loss.nll() * fitted.objective->normalizer() / visibilities.front();
}

FitNoise noise_of_fit(const FitPlan& plan, const PartToFit& part, const FittedPart& fitted, double reduced) {
  return measured_noise(plan.options, part.data, fitted.model, *fitted.objective, reduced,
                        part.ranks ? std::nullopt : std::optional(SharedErrors::once), NoiseDraws::of_samples, part.ranks.get());
}

/// filled_share() over the channels of all ranks; nothing of an image without any light, for which weights need not grow.
std::optional<double> filled_share_of(FittedPart& fitted, const PartToFit& part, double noise_factor) {
  const auto sky = fitted.model->make_sky();
  const auto channels = static_cast<double>(sky.size(0));
  std::vector<double> sums{filled_share(sky, part.data.dataset, noise_factor) * channels, channels,
                           sky.any().item<bool>() ? 1.0 : 0.0};
  if (part.ranks) part.ranks->sum(sums);
  return sums[2] > 0 ? std::optional(sums[0] / sums[1]) : std::nullopt;
}

/// What each channel's share of its field is from now on, over the channels of all ranks.
std::vector<double> filled_channels(const FitPlan& plan, const PartToFit& part, FittedPart& fitted, double noise_factor,
                                    std::vector<double> present) {
  const auto begin = part.place.first, end = begin + part.data.channels.nchan();
  present.resize(plan.signals.size(), usual_filled);
  const auto own =
      filled_to_follow({plan.signals.begin() + begin, plan.signals.begin() + end}, noise_factor, fitted.model->make_sky(),
                       part.data.dataset, {present.begin() + begin, present.begin() + end});
  std::vector<double> sums(2 * present.size());  // shares, and of which channels
  for (auto c = begin; c < end; ++c) {
    sums[static_cast<std::size_t>(c)] = own[static_cast<std::size_t>(c - begin)];
    sums[static_cast<std::size_t>(c) + present.size()] = 1;
  }
  if (part.ranks) part.ranks->sum(sums);
  for (std::size_t c = 0; c < present.size(); ++c) {
    if (sums[c + present.size()] > 0) present[c] = sums[c];
  }
  return present;
}

/// What is known when a fit has ended that was made for what was known before. The noise is that which the first one shows that
/// has converged.
FitTraits traits_of_fit(const FitPlan& plan, const PartToFit& part, FittedPart& fitted, const FitTraits& before) {
  const torch::NoGradGuard no_gradient;
  auto traits = before;
  ++traits.fits;
  if (!before.knows_noise()) {
    const double reduced = reduced_chi_squared(fitted, part);
    if (before.looks) {
      traits.noise = noise_of_look(reduced);
    } else {
      traits.reduced = reduced;
      traits.noise = noise_to_follow(noise_of_fit(plan, part, fitted, reduced), before.noise);
    }
  }
  const double factor = traits.noise.factor();
  auto filled = traits;
  if (!plan.signals.empty()) filled.filled = filled_channels(plan, part, fitted, factor, before.filled);
  else if (const auto share = filled_share_of(fitted, part, factor))
    filled.filled = {filled_to_follow(*plan.peaks, factor, *share, before.filled.front())};
  return have_same_weights(terms_for(filled, plan), terms_for(traits, plan)) ? traits : filled;
}

/// What the image of a slow fit shows; nothing where weights stay what they are.
std::optional<FitTraits> early_traits(const FitPlan& plan, const PartToFit& part, FittedPart& fitted) {
  const torch::NoGradGuard no_gradient;
  FitTraits traits;
  traits.slow = true;
  const auto share = filled_share_of(fitted, part, traits.noise.factor());
  if (!share) return std::nullopt;
  traits.filled = {filled_to_follow(*plan.peaks, traits.noise.factor(), *share)};
  return have_same_weights(terms_for(traits, plan), plan.terms) ? std::nullopt : std::optional(traits);
}

/// How many epochs a checkpoint in the folder of a run's state has done; 0 without one.
std::int64_t epochs_done(const std::filesystem::path& state) {
  const auto header = read_checkpoint_header(state / checkpoint_name);
  return header ? header->epochs : 0;
}

std::string words_of(const FitTraits& traits) {
  std::vector<std::string> words;
  if (traits.noise.factor() != 1) words.push_back("the noise is " + noise_words(traits.noise));
  if (traits.follows_source()) words.push_back(filled_words(traits.filled));
  return fmt::format("{}", fmt::join(words, "; "));
}

/// The fits of one part: the first, and those with weights for what it has shown.
class PartFits {
 public:
  PartFits(const FitPlan& plan, const PartToFit& part)
      : plan_(plan), part_(part), options_(plan.options), train_(train_options(plan.options, plan.record, plan.state)) {
    fitted_.model = make_model(options_, part.data, part.place);
    fitted_.model->to(part.device, options_.data.dtype);
    train_.label(plan.label).logs_warnings(false);
    if (plan.channels_at_once) note_channels_at_once(train_.notes(), *plan.channels_at_once);
    train_.interrupted([] { return stop_requested() != 0; });
    if (part.ranks) train_.ranks(part.ranks);
    const bool may_look = plan.peaks && *options_.epochs >= choose_optimizer(options_).usual_epochs();  // without a limit
    looks_first_ = may_look && !plan.signals.empty();
    looks_early_ = may_look && plan.signals.empty() && train_.wanted_tolerance();
  }

  FittedPart run() {
    if (plan_.peaks && options_.resume) fitted_.traits = traits_of_run(plan_.state);
    if (looks_first_ && !fitted_.traits) {
      fitted_.traits.emplace().looks = true;
      note_traits(train_.notes(), *fitted_.traits);
    }
    if (train_.resume() && epochs_until_look() > 0 && epochs_done(plan_.state) == epochs_until_look()) look_again();
    else fit();
    if (early_) go_on_for(*early_, true);
    while (plan_.peaks && has_something_to_show()) {
      const auto before = fitted_.traits.value_or(FitTraits());
      if (before.noise.factor() > 1 && !before.looks) {
        const double reduced = reduced_chi_squared(fitted_, part_);  // which all ranks sum up
        if (refutes_noise(reduced, before.reduced)) {
          go_on_without_noise(before, reduced);
          break;
        }
      }
      const bool tells_noise = looks_first_ && !before.looks;
      if (tells_noise ? before.knows_noise() : before.fits >= most_usual_fits && !before.looks) break;
      auto traits = traits_of_fit(plan_, part_, fitted_, before);
      const bool stay_the_same = tells_noise ? traits.noise.factor() == before.noise.factor() : traits.ask_for_weights_of(before);
      if (stay_the_same && !before.looks) break;
      if (tells_noise) traits.fits = 1;  // what fills the field is looked at anew, with that noise
      traits.looks = tells_noise || (before.looks && !stay_the_same && before.fits < most_usual_fits);
      go_on_for(traits, !stay_the_same);
    }
    for (const auto& warning : fitted_.result.warnings) log_warning(warning);
    fitted_.sky = sky_of(*fitted_.model, part_);
    return std::move(fitted_);
  }

 private:
  bool has_something_to_show() const {
    const auto reason = fitted_.result.stop_reason;
    return reason == StopReason::converged || reason == StopReason::callback;
  }
  bool is_slow() const { return fitted_.traits && fitted_.traits->slow; }
  bool looks() const { return fitted_.traits && fitted_.traits->looks; }
  bool may_end_early() const { return looks_early_ && !fitted_.traits; }
  /// After how many epochs the next fit ends, or may end, for a look; 0: after none.
  std::int64_t epochs_until_look() const { return looks() ? epochs_of_look : may_end_early() ? epochs_of_early_look : 0; }

  void fit() { fit_up_to(*options_.epochs); }
  void fit_up_to(std::int64_t epochs) {
    train_.epochs(epochs);
    fitted_.terms = fitted_.traits ? terms_for(*fitted_.traits, plan_) : plan_.terms;
    const Objective objective(part_.likelihood, terms_of_part(fitted_.terms, part_), options_.normalize);
    fitted_.objective = part_.ranks ? objective.divided_by(plan_.normalizer) : objective;
    ProgressReport report(report_options(options_, part_));
    std::vector<Callback> callbacks{report.callback()};
    Watchers watchers(plan_, *fitted_.objective, fitted_.model, train_, callbacks);
    if (looks()) callbacks.emplace_back(end_look);
    if (may_end_early()) {
      callbacks.emplace_back([this](const Progress& progress) { return look_early(progress); });
      train_.model_interval(std::gcd(train_.model_interval(), epochs_of_early_look));
    }
    train_.fewest_epochs(is_slow() ? epochs_of_early_look : 0);
    train_.callbacks(std::move(callbacks));
    fitted_.result = Trainer(fitted_.model, *fitted_.objective, train_).fit();
    report.finish();
    if (fitted_.ended() && epochs == *options_.epochs) watchers.finish(*fitted_.model);
  }

  CallbackAction look_early(const Progress& progress) {
    if (progress.loss.epoch + 1 == epochs_of_early_look) early_ = early_traits(plan_, part_, fitted_);
    return early_ ? CallbackAction::stop : CallbackAction::proceed;
  }
  /// Goes on from a checkpoint of after the last epoch before a look, which may have ended the fit.
  void look_again() {
    fit_up_to(epochs_until_look());
    fitted_.result.stop_reason = StopReason::callback;
    if (looks()) return;
    early_ = early_traits(plan_, part_, fitted_);
    if (!early_) fit();
  }
  void go_on_without_noise(FitTraits traits, double reduced) {
    if (speaks(options_, part_))
      fmt::print("with lambda for that noise chi^2 is {:.1f} times what it was: the priors leave it, and lambda are set back\n",
                 reduced / traits.reduced);
    traits.noise = {};
    traits.fits = most_usual_fits;  // it is the last
    go_on_with(traits);
  }
  void go_on_for(const FitTraits& traits, bool weights_differ) {
    if (weights_differ && speaks(options_, part_)) fmt::print("{}: the fit goes on with lambda for that\n", words_of(traits));
    go_on_with(traits);
  }
  void go_on_with(const FitTraits& traits) {
    fitted_.traits = traits;
    note_traits(train_.notes(), traits);
    train_.resume(false);  // what is there to resume is of the fit before
    fit();
  }

  const FitPlan& plan_;
  const PartToFit& part_;
  const ImageOptions& options_;
  TrainOptions train_;
  FittedPart fitted_;
  bool looks_first_ = false;  ///< all channels of a cube wait for the slowest: fits that only show weights need not converge
  bool looks_early_ = false;  ///< at a first fit that is slow
  std::optional<FitTraits> early_;  ///< what a first fit showed that was slow
};

}  // namespace

FitSize FitSize::of(const std::shared_ptr<Likelihood>& likelihood, std::int64_t cells, const ImageOptions& options) {
  return {Objective(likelihood, {}, options.normalize).normalizer(), likelihood->samples(), likelihood->visibilities_count(),
          cells};
}

bool FittedPart::ended() const { return result.stop_reason == StopReason::epochs || result.stop_reason == StopReason::converged; }

FittedPart fit_part(const FitPlan& plan, const PartToFit& part) { return PartFits(plan, part).run(); }

}  // namespace mpol::cli
