#include <mpol_cpp/cli/run/fit_terms.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/lambda_search.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/run/bounded_weights.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/cli/sharing/sharding.h>
#include <mpol_cpp/cli/output/stopwatch.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/two_digits.h>
#include <mpol_cpp/gridding/peak_signal.h>
#include <mpol_cpp/objective/guess_weights.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/usual_units.h>

namespace mpol::cli {
namespace {

/// Gives strengths that nobody gave a number, and those where a search begins that was given none, what suits the data.
/// @param signal_to_noise  DirtyPeaks::brightest
void take_usual_units(RegularizerOptions& r, double signal_to_noise) {
  for (const auto kind : all_regularizers()) {
    const auto name = option_of(kind);
    const auto& regularizer = regularizer_of(kind);
    const auto search = r.searched.find(name);
    const bool begins_there = search != r.searched.end() && !search->second.range;
    if (regularizer.automatic && (r.automatic.contains(name) || begins_there))
      r.in_units[name] = usual_units(regularizer, signal_to_noise);
  }
}

/// What a weight is where chi^2 is divided by other numbers, as in other programs.
std::string conversion_words(const Term& term, const TermWeighing& with) {
  const auto beside = [&](double other) { return term.weights().front() * with.size.normalizer / other; };
  const auto cells = with.size.cells;
  return fmt::format(
      "lambda of {}: {:.6g} beside chi^2/(2 x {} cells), {:.6g} beside chi^2/(2 x {} visibilities), {:.6g} beside chi^2",
      term.name(), beside(static_cast<double>(cells)), cells, beside(static_cast<double>(with.size.visibilities)),
      with.size.visibilities, beside(0.5));
}

constexpr const char* automatic_words = "auto";

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Whether a term has the usual weights, each channel its own where there are signals of them.
bool has_usual_weight(const Term& term, const ImageOptions& options) {
  return options.regularizers.automatic.contains(option_of(term.name())) && regularizer_of(term.kind()).automatic.has_value();
}

/// How a weight came about.
struct WeightSource {
  std::string how;
  bool is_given = false;  ///< by somebody, as a number
};

/// That of a weight that was not guessed.
WeightSource source_of(const Term& term, const TermWeighing& with) {
  const auto& given = with.options.regularizers;
  const auto option = option_of(term.name());
  if (with.summary.bound) return {fmt::format("bounded, {:.4g} times what was given", with.summary.bound->factor)};
  if (given.searched.contains(option)) return {words_of_choice(with.summary.scan->best().kind)};
  if (given.automatic.contains(option)) return {automatic_words};
  return given.in_units.contains(option) ? WeightSource{"noise units"} : WeightSource{"given", true};
}

/// Gives the terms the weights that cross-validation chose, and says what is doubtful about them.
void take_chosen(std::vector<Term>& terms, const TermWeighing& with) {
  const auto& scan = *with.summary.scan;
  for (std::size_t axis = 0; axis < scan.axes.size(); ++axis) {
    for (auto& term : terms) {
      if (term.name() == scan.axes[axis].term) term = term.with_weights({scan.lambda(scan.chosen, axis)});
    }
  }
  for (const auto& warning : scan_warnings(scan)) log_warning(warning);
  if (const auto& check = with.summary.split_check) {
    if (!check->agrees()) log_warning(words_of_check(*check, scan));
    else if (with.options.output.speaks()) fmt::print("{}\n", words_of_check(*check, scan));
  }
  if (const auto words = diagnostic_words(scan); with.options.output.speaks() && !words.empty()) fmt::print("{}\n", words);
}

/// The summary of a term of which each channel has a weight of its own.
LambdaSummary lambda_of_channels(const Term& term, const std::vector<ChannelSignal>& signals, const std::string& how) {
  LambdaSummary lambda{term.name(), 0, std::nullopt, how};
  for (std::size_t c = 0; c < signals.size(); ++c) {
    lambda.of_channels.push_back(term.weight(0, c));
    lambda.units_of_channels.push_back(term.weight(0, c) / signals[c].unit);
  }
  lambda.value = median(lambda.of_channels);
  lambda.in_units = median(lambda.units_of_channels);
  return lambda;
}

void note_lambda(const Term& term, std::optional<double> unit, const WeightSource& source, const TermWeighing& with) {
  const double value = term.weights().front();
  const auto in_units = unit && *unit > 0 ? std::optional(value / *unit) : std::nullopt;
  const auto lambda = term.channel_factors().empty() ? LambdaSummary{term.name(), value, in_units, source.how, source.is_given}
                                                     : lambda_of_channels(term, with.summary.signals, source.how);
  with.summary.lambdas.push_back(lambda);
  if (source.is_given) return;
  with.record.note_lambda(term.name(), lambda.value, lambda.in_units, source.how);
  if (!with.options.output.speaks()) return;
  const auto words = in_units ? fmt::format("{}, {} U", source.how, units_words(lambda)) : source.how;
  fmt::print("lambda of {}: {} ({})\n", term.name(), value_words(lambda), words);
}

double next_number(std::istream& numbers) {
  std::string word;
  numbers >> word;
  return number_of<double>(word).value();
}

}  // namespace

std::vector<Term> weigh_terms(const TermWeighing& with) {
  const auto& coords = with.coords;
  const auto& noise = with.noise;
  auto options = with.options;
  auto& given = options.regularizers;
  take_usual_units(given, with.summary.peaks.brightest);
  auto terms = regularizer_terms(with_units_as_numbers(given));
  for (auto& term : terms) {
    if (!given.in_units.contains(option_of(term.name()))) continue;
    term = term.with_weights({term.weights().front() * lambda_unit(term, noise, coords).value()});
  }
  if (const auto& signals = with.summary.signals; !signals.empty()) {
    for (auto& term : terms) {
      if (has_usual_weight(term, with.options))
        term = with_usual_weights(term, signals, 1, std::vector(signals.size(), usual_filled));
    }
  }
  const auto own = terms.size();
  if (!with.options.guess_lambda.empty()) {
    for (const auto& term : guess_weights(regularizer_terms(guessed_regularizers(with.options)), with.data.dataset))
      terms.push_back(term);
  }
  if (!given.searched.empty()) {
    const Stopwatch watch(with.summary.seconds.crossval);
    const LambdaSearch search{options, with.record, with.data, terms, noise, with.device, with.state, with.ranks, with.devices};
    with.summary.scan = cross_validate(search);
    if (with.options.crossval.check_split && !with.summary.scan->interrupted) {
      with.summary.split_check = check_split(search, *with.summary.scan);
      with.summary.scan->interrupted = with.summary.split_check->interrupted;
    }
    if (with.summary.scan->interrupted) return terms;
    take_chosen(terms, with);
  }
  if (with.options.chi2_bound) terms = bounded_weights(terms, with);
  for (std::size_t i = 0; i < terms.size(); ++i)
    note_lambda(terms[i], lambda_unit(terms[i], noise, coords),
                i < own || with.summary.bound ? source_of(terms[i], with) : WeightSource{"guessed"}, with);
  for (const auto& term : terms) log_info(conversion_words(term, with));
  return terms;
}

bool weights_follow_fit(const ImageOptions& options) {
  const auto& given = options.regularizers;
  return options.is_gaussian() && !options.likelihood_kind().of_cells && !options.chi2_bound && given.searched.empty() &&
         !given.automatic.empty() && choose_optimizer(options).is_convex();
}

bool weighs_channels(const ImageOptions& options, std::int64_t nchan) {
  const auto& given = options.regularizers;
  return nchan > 1 && !given.automatic.empty() && given.searched.empty() && !options.chi2_bound &&
         choose_optimizer(options).is_convex() && joining_term(options).empty();
}

Looking looking(const ImageOptions& options, std::int64_t nchan, double normalizer) {
  return {options.sign == PixelSign::either, weighs_channels(options, nchan), normalizer};
}

std::vector<Term> terms_for_traits(std::vector<Term> terms, const ImageOptions& options, double signal_to_noise,
                                   const std::vector<ChannelSignal>& signals, const FitTraits& traits) {
  const double noise = traits.noise.factor();
  for (auto& term : terms) {
    if (!options.regularizers.automatic.contains(option_of(term.name()))) continue;
    if (!signals.empty() && has_usual_weight(term, options)) {
      auto filled = traits.filled;
      filled.resize(signals.size(), usual_filled);
      term = with_usual_weights(term, signals, noise, filled);
      continue;
    }
    const auto& regularizer = regularizer_of(term.kind());
    const double factor = regularizer.automatic ? usual_units(regularizer, signal_to_noise, noise, traits.filled.front()) /
                                                      usual_units(regularizer, signal_to_noise)
                                                : two_digits(noise);
    term = term.with_weights({term.weights().front() * factor});
  }
  return terms;
}

Term with_channels_of(const Term& term, const Term& other, const Share& channels) {
  if (other.channel_factors().empty()) return term;
  std::vector<double> weights;
  for (std::size_t c = 0; c < other.channel_factors().size(); ++c) {
    const bool is_other = static_cast<std::int64_t>(c) >= channels.begin && static_cast<std::int64_t>(c) < channels.end;
    weights.push_back((is_other ? other : term).weight(0, c));
  }
  return with_channel_weights(term, std::move(weights));
}

void note_terms_anew(const std::vector<Term>& terms, const TermWeighing& with) {
  std::erase_if(with.summary.lambdas, [](const LambdaSummary& lambda) { return lambda.how == automatic_words; });
  for (const auto& term : terms) {
    if (const auto source = source_of(term, with); source.how == automatic_words)
      note_lambda(term, lambda_unit(term, with.noise, with.coords), source, with);
  }
}

std::vector<Term> terms_of_first(const ImageOptions& options, std::vector<Term> weighed) {
  std::string text;
  for (const auto& term : weighed) {
    const auto& factors = term.channel_factors();
    text += fmt::format("{:.17g} {} {:.17g} ", term.weights().front(), factors.size(), fmt::join(factors, " "));
  }
  std::istringstream numbers(text_of_first(text));
  if (ranks()->is_first()) return weighed;
  auto terms = regularizer_terms(with_units_as_numbers(options.regularizers));
  for (const auto& term : regularizer_terms(guessed_regularizers(options))) terms.push_back(term);
  for (auto& term : terms) {
    term = term.with_weights({next_number(numbers)});
    std::vector<double> factors(static_cast<std::size_t>(next_number(numbers)));
    for (auto& factor : factors) factor = next_number(numbers);
    if (!factors.empty()) term = term.with_channel_factors(std::move(factors));
  }
  return terms;
}

std::vector<ChannelSignal> signals_of_first(const std::vector<ChannelSignal>& known) {
  std::string text = fmt::format("{}", known.size());
  for (const auto& [peaks, unit] : known)
    text += fmt::format(" {:.17g} {:.17g} {:.17g} {:.17g} {:.17g}", peaks.brightest, peaks.darkest, peaks.on_any_scale,
                        peaks.share_on_scale, unit);
  std::istringstream numbers(text_of_first(text));
  std::vector<ChannelSignal> signals(static_cast<std::size_t>(next_number(numbers)));
  for (auto& [peaks, unit] : signals) {
    for (auto* number : {&peaks.brightest, &peaks.darkest, &peaks.on_any_scale, &peaks.share_on_scale, &unit})
      *number = next_number(numbers);
  }
  return signals;
}

std::vector<Choice> lambda_choices(const ImageOptions& options, const FirstLook& look, const NoiseUnit& noise,
                                   const GridCoords& coords) {
  auto given = options.regularizers;
  const double signal = look.peaks.brightest;
  take_usual_units(given, signal);
  const auto& signals = look.signals;
  std::vector<Choice> choices;
  for (const auto& term : regularizer_terms(with_units_as_numbers(given))) {
    const auto option = option_of(term.name());
    if (!given.in_units.contains(option)) continue;
    if (given.searched.contains(option)) {
      choices.push_back({option, given.searched.at(option).text, "to be cross-validated"});
      continue;
    }
    if (!signals.empty() && has_usual_weight(term, options)) {
      const auto weighed = with_usual_weights(term, signals, 1, std::vector(signals.size(), usual_filled));
      const auto lambda = lambda_of_channels(weighed, signals, automatic_words);
      choices.push_back(
          {option, value_words(lambda),
           fmt::format("{} U, in units of the noise, each channel's own, for a peak of {:.3g} times the noise in the "
                       "brightest",
                       units_words(lambda), signal)});
      continue;
    }
    const double units = given.in_units.at(option), unit = lambda_unit(term, noise, coords).value();
    const auto why = given.automatic.contains(option) ? fmt::format("for a peak of {:.3g} times the noise", signal) : "as given";
    choices.push_back(
        {option, fmt::format("{:.4g}", units * unit), fmt::format("{:.4g} U, in units of the noise, {}", units, why)});
  }
  return choices;
}

}  // namespace mpol::cli
