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
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/run/fit_events.h>
#include <mpol_cpp/cli/run/fit_terms.h>
#include <mpol_cpp/core/format.h>
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

FitNoise noise_of_fit(const FitPlan& plan, const PartToFit& part, const FittedPart& fitted) {
  const double reduced = reduced_chi_squared(fitted, part);
  return measured_noise(plan.options, part.data, fitted.model, *fitted.objective, reduced,
                        part.ranks ? std::nullopt : std::optional(SharedErrors::once));
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

/// What is known when a fit has ended that was made for what was known before. The noise is that which the first one shows, or
/// the last that looks.
FitTraits traits_of_fit(const FitPlan& plan, const PartToFit& part, FittedPart& fitted, const FitTraits& before) {
  const torch::NoGradGuard no_gradient;
  auto traits = before;
  if (traits.fits++ == 1 || before.looks) {
    const auto noise = noise_of_fit(plan, part, fitted);
    traits.noise = noise.is_off() ? noise : FitNoise();
  }
  const double factor = traits.noise.factor();
  auto filled = traits;
  if (!plan.signals.empty()) filled.filled = filled_channels(plan, part, fitted, factor, before.filled);
  else if (const auto share = filled_share_of(fitted, part, factor))
    filled.filled = {filled_to_follow(*plan.peaks, factor, *share, before.filled.front())};
  return have_same_weights(terms_for(filled, plan), terms_for(traits, plan)) ? traits : filled;
}

std::string words_of(const FitTraits& traits) {
  std::vector<std::string> words;
  if (traits.noise.factor() != 1) words.push_back("the noise is " + noise_words(traits.noise));
  if (traits.follows_source()) words.push_back(filled_words(traits.filled));
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

FitSize FitSize::of(const std::shared_ptr<Likelihood>& likelihood, const ImageOptions& options) {
  return {Objective(likelihood, {}, options.normalize).normalizer(), likelihood->samples(), likelihood->visibilities_count()};
}

bool FittedPart::ended() const { return result.stop_reason == StopReason::epochs || result.stop_reason == StopReason::converged; }

FittedPart fit_part(const FitPlan& plan, const PartToFit& part) {
  const auto& options = plan.options;
  FittedPart fitted;
  fitted.model = make_model(options, part.data, part.place);
  fitted.model->to(part.device, options.data.dtype);
  auto train = train_options(options, plan.record, plan.state);
  train.label(plan.label);
  if (plan.channels_at_once) note_channels_at_once(train.notes(), *plan.channels_at_once);
  train.interrupted([] { return stop_requested() != 0; });
  if (part.ranks) train.ranks(part.ranks);
  // All channels of a cube wait for the slowest: fits that only show what weights should be need not converge.
  const bool is_limited = *options.epochs < choose_optimizer(options).usual_epochs();
  const bool looks_first = plan.peaks && !plan.signals.empty() && !is_limited;
  const auto fit = [&] {
    fitted.terms = fitted.traits ? terms_for(*fitted.traits, plan) : plan.terms;
    const Objective objective(part.likelihood, terms_of_part(fitted.terms, part), options.normalize);
    fitted.objective = part.ranks ? objective.divided_by(plan.normalizer) : objective;
    ProgressReport report(report_options(options, part));
    std::vector<Callback> callbacks{report.callback()};
    Watchers watchers(plan, *fitted.objective, fitted.model, train, callbacks);
    if (fitted.traits && fitted.traits->looks) callbacks.emplace_back(end_look);
    train.callbacks(std::move(callbacks));
    fitted.result = Trainer(fitted.model, *fitted.objective, train).fit();
    report.finish();
    if (fitted.ended()) watchers.finish(*fitted.model);
  };
  if (plan.peaks && options.resume) fitted.traits = traits_of_run(plan.state);
  if (looks_first && !fitted.traits) {
    fitted.traits.emplace().looks = true;
    note_traits(train.notes(), *fitted.traits);
  }
  fit();
  while (plan.peaks &&
         (fitted.result.stop_reason == StopReason::converged || fitted.result.stop_reason == StopReason::callback)) {
    const auto before = fitted.traits.value_or(FitTraits());
    if (looks_first ? !before.looks : before.fits == most_usual_fits) break;
    auto traits = traits_of_fit(plan, part, fitted, before);
    const bool stay_the_same = traits.ask_for_weights_of(before);
    if (stay_the_same && !before.looks) break;
    traits.looks = before.looks && !stay_the_same && before.fits < most_usual_fits;
    fitted.traits = traits;
    if (!stay_the_same && speaks(options, part)) fmt::print("{}: the fit goes on with lambda for that\n", words_of(traits));
    note_traits(train.notes(), traits);
    train.resume(false);  // what is there to resume is of the fit before
    fit();
  }
  fitted.sky = sky_of(*fitted.model, part);
  return fitted;
}

}  // namespace mpol::cli
