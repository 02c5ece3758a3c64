#include <mpol_cpp/cli/image/image_options.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <utility>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/image/weight_check.h>
#include <mpol_cpp/cli/options/structure_regions.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/device/backends/backend.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::cli {
namespace {

/// Where nothing is known about a strength, in units of noise.
constexpr double usual_strength = 1;

constexpr const char* regularizer_group = "Regularisers";

/// Whether a cross-validation holds out blocks of data.
bool folds_are_blocks(const ImageOptions& image) {
  return !image.regularizers.searched.empty() && image.crossval.score == Score::folds &&
         image.crossval.split == FoldSplit::blocks;
}

/// A weight, where it is one; the error names what else may be given.
double parse_weight(const Regularizer& regularizer, const std::string& name, const std::string& text, const std::string& number) {
  if (number_of<double>(number)) return parse_number(name, number, Range::not_negative());
  const bool has_usual = regularizer.automatic || regularizer.asked_for;
  throw UsageError(error_text(
      "--" + name, text.empty() ? "(nothing)" : text, "is no weight",
      fmt::format("give a number, a multiple of the unit of noise as in 0.3U, {}cv, or LO:HI:N", has_usual ? "auto, " : "")));
}

/// What noise has a unit for: a number, "0.3U", something to search, or, of those that have a usual one, "auto".
void set_in_units(RegularizerOptions& r, TermKind kind, const std::string& text) {
  const auto name = option_of(kind);
  const auto& regularizer = regularizer_of(kind);
  const auto automatic = regularizer.automatic ? std::optional(regularizer.automatic->bright) : regularizer.asked_for;
  r.given.insert(name);
  r.in_units.erase(name);
  r.automatic.erase(name);
  r.searched.erase(name);
  r.strength(kind) = 0;
  if (text == "cv" || text.find(':') != std::string::npos) {
    r.searched[name] = parse_searched(name, text);
    r.in_units[name] = automatic.value_or(usual_strength);
  } else if (automatic && text == "auto") {
    r.in_units[name] = *automatic;
    r.automatic.insert(name);
  } else if (text.ends_with('U')) {
    r.in_units[name] = parse_weight(regularizer, name, text, text.substr(0, text.size() - 1));
  } else {
    r.strength(kind) = parse_weight(regularizer, name, text, text);
  }
}

/// Newer regularizers are not in the settings of runs without them, which go on as before there were any.
std::optional<std::string> recorded_strength(const RegularizerOptions& r, TermKind kind) {
  const auto name = option_of(kind);
  if (const auto search = r.searched.find(name); search != r.searched.end()) return toml_string(search->second.text);
  if (r.automatic.contains(name)) return toml_string("auto");
  if (const auto found = r.in_units.find(name); found != r.in_units.end()) return toml_string(fmt::format("{}U", found->second));
  if (r.strength(kind) == 0 && !regularizer_of(kind).recorded_when_off) return std::nullopt;
  return fmt::format("{}", r.strength(kind));
}

void declare_strength(OptionSet& options, RegularizerOptions& r, TermKind kind) {
  const auto set = [&r, kind](const std::string& text) {
    if (regularizer_of(kind).noise_scale != NoiseScale::none) return set_in_units(r, kind, text);
    r.given.insert(option_of(kind));
    r.strength(kind) = parse_number(option_of(kind), text, Range::not_negative());
  };
  const auto get = [&r, kind] { return recorded_strength(r, kind); };
  auto* option = options.parsed("--" + option_of(kind), set, get, "LAMBDA", regularizer_of(kind).help, Record::result);
  option->group(regularizer_group);
  // Its default is one only where nothing is said of others: in a file of settings the same value says something.
  if (regularizer_of(kind).automatic) option->type_name("LAMBDA=" + option->get_default_str())->default_str("");
}

void declare_regularizers(OptionSet& options, RegularizerOptions& r) {
  for (const auto kind : all_regularizers()) declare_strength(options, r, kind);
  for (const auto kind : all_regularizers()) {
    const auto& settings = regularizer_of(kind).settings;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (settings[i].option.empty()) continue;
      options
          .number("--" + settings[i].option, r.settings_of(kind)[i], Range::positive(), settings[i].unit, settings[i].help,
                  Record::result)
          ->group(regularizer_group);
    }
  }
}

/// Settings of a regularizer mean something where it is in the fit.
void state_meanings_of_regularizers(OptionSet& options, const ImageOptions& image) {
  for (const auto kind : all_regularizers()) {
    for (const auto& setting : regularizer_of(kind).settings) {
      if (!setting.option.empty())
        options.only({"--" + setting.option}, "with --" + option_of(kind), [&image, kind] { return in_fit(image, kind); });
    }
  }
}

void declare_bound(OptionSet& options, ImageOptions& image) {
  const auto set = [&image](const std::string& text) {
    ChiSquaredBound bound{text, {}};
    if (text != "auto") bound.value = parse_number("chi2-bound", text, Range::positive());
    image.chi2_bound = bound;
  };
  const auto get = [&image]() -> std::optional<std::string> {
    return image.chi2_bound ? std::optional(toml_string(image.chi2_bound->text)) : std::nullopt;
  };
  options.parsed(
      "--chi2-bound", set, get, "auto|R",
      "The simplest image with a chi^2/(2 N) of at most R, or, auto, within the noise: each LAMBDA is multiplied by the "
      "one factor that brings the fit there",
      Record::result);
}

void declare_likelihood(OptionSet& options, ImageOptions& image) {
  const auto result = Record::result;
  std::vector<std::string> names, words;
  for (const auto& kind : all_likelihoods()) {
    names.push_back(kind.name);
    words.push_back(kind.help);
  }
  words.back().insert(0, "or ");
  options.choice("--likelihood", image.likelihood, names,
                 fmt::format("How the image is compared with the data: chi^2 {}", fmt::join(words, ", ")), result);
  options.choice("--noise", image.noise, noise_choices,
                 "Noise of the visibilities; student: outliers hardly count, needs --likelihood loose", result);
  options.number("--degrees-of-freedom", image.degrees_of_freedom, Range::positive(), "NU", "Of --noise student; default: 4",
                 result);
  const auto set_batch_size = [&image](const std::string& text) {
    image.in_chunks = text == "auto";
    image.batch_size.reset();
    if (!image.in_chunks) image.batch_size = parse_integer("batch-size", text, Range::between(1, 1e15));
  };
  const auto get_batch_size = [&image]() -> std::optional<std::string> {
    if (image.in_chunks) return toml_string("auto");
    return image.batch_size ? std::optional(fmt::format("{}", *image.batch_size)) : std::nullopt;
  };
  options.parsed("--batch-size", set_batch_size, get_batch_size, "N|auto",
                 "Visibilities of a channel that a step sees, of --likelihood loose; default: all; auto: all, but no more at a "
                 "time than free memory holds",
                 result);
  options.choice("--sampling", image.sampling, sampling_choices,
                 "Which visibilities make a batch: any (default), neighbours in the uv plane, or of every baseline length alike",
                 result);
  options.choice("--normalize", image.normalize, normalize_choices,
                 "What chi^2 is divided by: twice the occupied cells, twice the visibilities, or 1", result);
  if (!image.searches_by_itself) declare_bound(options, image);
  options.choice("--mode", image.mode, image_mode_choices,
                 "One image of all channels, or one per channel; default: a cube when the arrays have channels", result);
  options.choice("--scatter-check", image.scatter_check, scatter_check_choices,
                 "Compare the scatter of the data with their weights", Record::manner);
}

void declare_fit(OptionSet& options, ImageOptions& image) {
  const auto result = Record::result;
  options.choice(
      "--optimizer", image.optimizer, optimizer_choices,
      "auto, pogm, fista and admm go on until the fit has converged; auto takes pogm where every term is convex, else adam",
      result);
  options.number("--tolerance", image.tolerance, Range::between(1e-12, 0.5), "PART",
                 "When a fit has converged: over the second half of its epochs its loss fell by no more than this part of the "
                 "regularisers' value, and the image changed by no more than twenty times this part; default: 0.001",
                 result);
  declare(options, image.update);
  options.integer(
      "--epochs", image.epochs, Range::between(1, 1e15),
      "The most that auto, pogm, fista and admm may take (default: 20000); of adam, sgd and lbfgs exactly this many, without "
      "--stop-relative (default: 500)",
      Record::manner);
  options.text("--stop-relative", image.stop_relative, "R[:WINDOW]",
               "Stop when the loss of each of the last WINDOW (10) epochs is within the fraction R of the present one", result);
  const auto set_start = [&image](const std::string& text) { image.start = parse_start(text); };
  const auto get_start = [&image] { return std::optional(toml_string(text_of(image.start))); };
  options.parsed("--start", set_start, get_start, "START",
                 "Start from auto (scaled to the data), base:V (MPoL: base:-3), flat:JY_PER_ARCSEC2, dirty, or FILE.fits",
                 result);
  options.path("--mask", image.mask, "FITS image: pixels that are 0 stay empty", result);
  options.choice("--sign", image.sign, sign_choices,
                 "Whether pixels may be negative; auto: either of Stokes Q, U, V and of cross hands, else positive", result);
  options.flag("--no-hann", image.no_hann, "Fit free pixels, without the Hann convolution between them and the image", result);
  options.integer("--seed", image.seed, Range::between(0, 9e15), "Seed of whatever is random", result);
  options.flag("--deterministic", image.deterministic,
               "Take only operations that give the same bits each time on the same device, also LibTorch's", Record::result);
  options.choice("--step", image.step, step_choices, "How a step is computed", result);
}

void declare_channels_at_once(OptionSet& options, ImageOptions& image) {
  options.integer_or_auto(
      "--channels-at-once", image.channels_at_once, Range::between(1, 1e9),
      "Channels of a cube that are fitted together; the others follow, each group to its own end. Default: auto, all, or "
      "where memory does not hold their fit as many as it does",
      Record::manner);
}

/// Blocks of data: their gains, and folds of whole ones.
void declare_blocks(OptionSet& options, ImageOptions& image) {
  options.text(
      "--fit-blocks", image.fit_blocks, "KIND[,KIND...]",
      "Fit with the image, for each block of the data: shift of its position, amplitude, and weight, the scale of its weights",
      Record::result);
  declare_blocks(options, image.data.blocks, "with --fit-blocks, or --split blocks of a LAMBDA that is cv or LO:HI:N",
                 [&image] { return !image.fit_blocks.empty() || folds_are_blocks(image); });
}

void declare_points(OptionSet& options, ImageOptions& image) {
  options.text("--points", image.points, "auto|EAST,NORTH[;EAST,NORTH...]",
               "Fit point sources beside the image, and take them out of the data: at these places, arcsec from the phase "
               "centre, or, auto, "
               "where the image shows one that is too sharp for its pixels",
               Record::result);
}

void declare_crossval(OptionSet& options, ImageOptions& image) {
  auto& crossval = image.crossval;
  constexpr const char* group = "Cross-validation";
  options
      .choice("--score", crossval.score, score_choices,
              "By what LAMBDA are compared: held-out data, or, where noise is white, all data and the fit's degrees of freedom "
              "(Stein's unbiased risk; generalized cross-validation, which does without the weights' scale)",
              Record::result)
      ->group(group);
  options
      .integer("--folds", crossval.folds, Range::between(2, 1000), "Parts of the data, of which each is held out once",
               Record::result)
      ->group(group);
  options
      .choice("--split", crossval.split, split_choices,
              "What is held out together: uv cells at random, bins of a dartboard, or blocks of samples, which --blocks names",
              Record::result)
      ->group(group);
  options
      .flag("--check-split", crossval.check_split,
            "Try the choice and its neighbours once more by folds of the other kind, a dartboard, or random cells beside a "
            "dartboard, "
            "and say whether they agree",
            Record::result)
      ->group(group);
  options
      .choice("--search", crossval.search, search_choices,
              "Which LAMBDA are tried: neighbours of the best so far, all of LO:HI:N, or some at random", Record::result)
      ->group(group);
  options
      .integer("--search-points", crossval.points, Range::between(1, 1e6),
               "The most points that a compass tries; those of --search random", Record::result)
      ->group(group);
  options
      .integer(
          "--folds-at-once", crossval.folds_at_once, Range::between(1, 1000),
          "Folds that are fitted as one batch, each to the same end as alone; default: what the memory of a GPU takes, and 1 on "
          "a CPU",
          Record::manner)
      ->group(group);
  options.only({"--score", "--folds", "--split", "--check-split", "--search", "--search-points", "--folds-at-once"},
               "with a LAMBDA of cv or LO:HI:N", [&] { return !image.regularizers.searched.empty(); });
  options.only({"--folds", "--split", "--check-split"}, "with --score folds", [&] { return crossval.score == Score::folds; });
  options.only({"--folds-at-once"}, "with pogm, fista or admm, or with --optimizer adam or sgd and no --weight-decay", [&] {
    const auto chosen = choose_optimizer(image);
    return chosen.is_convex() || (chosen.kind != OptimizerKind::lbfgs && !chosen.tolerance && !image.update.weight_decay);
  });
  options.only({"--search-points"}, "with --search compass or random", [&] { return search_of(image) != Search::Kind::grid; });
}

void state_meanings_of_bound(OptionSet& options, const ImageOptions& image) {
  options.only({"--chi2-bound"}, "with --likelihood exact", [&] { return image.likelihood_kind().has_kernels; });
  options.only({"--chi2-bound"}, "where auto takes pogm", [&] { return choose_optimizer(image).is_convex(); });
  options.only({"--chi2-bound"}, "with a number for each LAMBDA", [&] { return image.regularizers.searched.empty(); });
}

void state_meanings(OptionSet& options, const ImageOptions& image) {
  options.only({"--degrees-of-freedom"}, "with --noise student", [&] { return image.noise == NoiseModel::Kind::student; });
  options.only({"--batch-size"}, "with --likelihood loose", [&] { return image.likelihood_kind().goes_through_samples; });
  options.only({"--tolerance"}, "with --optimizer auto, pogm, fista or admm, without --stop-relative",
               [&] { return choose_optimizer(image).tolerance.has_value(); });
  options.only({"--learning-rate", "--schedule", "--stop-relative", "--step"}, "without --optimizer pogm, fista or admm",
               [&] { return !asks_for_convex(image); });
  const auto is_taken = [&image](OptimizerKind kind) { return choose_optimizer(image).kind == kind; };
  options.only({"--momentum"}, "with --optimizer sgd", [=] { return is_taken(OptimizerKind::sgd); });
  options.only({"--betas"}, "with --optimizer adam", [=] { return is_taken(OptimizerKind::adam); });
  options.only({"--weight-decay"}, "with --optimizer adam or sgd",
               [=] { return is_taken(OptimizerKind::adam) || is_taken(OptimizerKind::sgd); });
  options.only({"--keep-samples"}, "where auto takes pogm, without --samples 0",
               [&] { return image.samples != 0 && choose_optimizer(image).is_convex(); });
  options.only({"--test-structure"}, "where auto takes pogm", [&] { return choose_optimizer(image).is_convex(); });
  options.only({"--samples"}, "where auto takes pogm, or as 0",
               [&] { return image.samples == 0 || choose_optimizer(image).is_convex(); });
  options.only({"--sampling"}, "with --batch-size N", [&] { return image.batch_size.has_value(); });
  options.only({"--kernel-folder"}, "with --likelihood exact", [&] { return image.likelihood_kind().has_kernels; });
  if (!image.searches_by_itself) state_meanings_of_bound(options, image);
  if (!image.searches_by_itself) {
    options.only({"--channels-at-once"}, "without --mode continuum",
                 [&] { return image.mode != ImageMode::continuum || !image.channels_at_once; });
  }
  options.only({"--overwrite"}, "without --resume", [&] { return !image.resume; });
  options.only({"--out", "--overwrite", "--resume"}, "without --dry-run", [&] { return !image.dry_run; });
  state_meanings_of_regularizers(options, image);
}

}  // namespace

void declare(OptionSet& options, ImageOptions& image) {
  declare(options, image.data, Computing::in_dtype_on_device);
  declare_conjugate(options, image.data);
  declare_center(options, image.data);
  declare_likelihood(options, image);
  declare_blocks(options, image);
  declare_points(options, image);
  declare_fit(options, image);
  declare_regularizers(options, image.regularizers);
  options
      .text("--guess-lambda", image.guess_lambda, "NAME[,NAME...]",
            "Guess LAMBDA of these regularisers (tv, ...) from dirty images: an order of magnitude", Record::result)
      ->group("Regularisers");
  declare_crossval(options, image);
  options
      .integer("--samples", image.samples, Range::between(0, 1e6),
               "Fits of simulated data, of the image observed anew, that tell its errors (64 are many): error.fits, std.fits, "
               "mean.fits, lower.fits, upper.fits; 0: none; default: 4, for error.fits alone",
               Record::result)
      ->group("Errors");
  options
      .flag(
          "--keep-samples", image.keep_samples,
          "Write the fits of simulated data, too: samples.fits, a plane for each, or samples_0000.fits, … of a cube's channels, "
          "for mpol profile OUT",
          Record::result)
      ->group("Errors");
  options
      .text("--test-structure", image.structures, "REGION[;REGION...]",
            "Judge whether structures of the image, clumps or gaps, are real: circle:EAST,NORTH,RADIUS in arcsec, or FILE.fits, "
            "a mask. With --resume of a finished run it takes no new fit",
            Record::manner)
      ->group("Errors");
  declare(options, image.output);
  options.integer("--checkpoint-interval", image.checkpoint_interval, Range::between(1, 1e15),
                  "Epochs between checkpoints; default: every 30 seconds", Record::manner);
  options.integer("--diagnostics-interval", image.diagnostics_interval, Range::between(1, 1e15),
                  "Epochs between figures of how the fit goes, in OUT/diagnostics; default: none", Record::manner);
  options.flag("--tensorboard", image.tensorboard,
               "Write losses and flux of every tenth epoch for TensorBoard, in OUT/diagnostics, while the fit goes on",
               Record::manner);
  options.number("--memory-limit", image.memory_limit, Range::positive(), "GIB",
                 "Refuse a fit that is estimated to need more memory than this; default: what is free", Record::manner);
  if (!image.searches_by_itself) declare_channels_at_once(options, image);
  options.path(
      "--kernel-folder", image.kernel_folder,
      "Keep the kernels of the exact likelihood (24 bytes a pixel and channel) in files of this folder instead of memory",
      Record::manner);
  options.choice(
      "--shard", image.shard, shard_choices,
      "What the ranks that mpirun, srun or torchrun started share, or several devices: auto takes the channels of a cube "
      "where its fit allows it, else the visibilities, of the exact likelihood (ranks alone) or of the loose one; rows of large "
      "images, by ranks alone, are taken where they are asked for",
      Record::manner);
  options.number("--rank-timeout", image.rank_timeout, Range::positive(), "SECONDS",
                 "How long a rank waits for another before all end; default: 600", Record::manner);
  options.flag("--split-channels", image.split_channels, "Write image_0000.fits, … instead of cubes", Record::result);
  options.flag("--resume", image.resume, "Continue the run in OUT from its checkpoint", Record::none);
  options.flag("--dry-run", image.dry_run,
               "Print what would be chosen, and why, and end without a fit; writes nothing, needs no OUT", Record::none);
  // Where the fits of folds diverge nothing is chosen, and no image begun.
  if (!image.searches_by_itself)
    options.flag("--keep-diverged", image.keep_diverged, "Write the last good image of a fit that diverged", Record::none);
  state_meanings(options, image);
}

RegularizerOptions::RegularizerOptions() {
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    if (regularizer.automatic) {
      in_units[option_of(kind)] = regularizer.automatic->bright;
      automatic.insert(option_of(kind));
    }
    for (std::size_t i = 0; i < regularizer.settings.size(); ++i) settings_of(kind)[i] = regularizer.settings[i].value;
  }
}

std::string option_of(std::string term) {
  std::replace(term.begin(), term.end(), '_', '-');
  return term;
}

std::string option_of(TermKind kind) { return option_of(regularizer_of(kind).name); }

RegularizerOptions with_units_as_numbers(RegularizerOptions options) {
  for (const auto kind : all_regularizers()) {
    if (const auto found = options.in_units.find(option_of(kind)); found != options.in_units.end())
      options.strength(kind) = found->second;
  }
  return options;
}

bool in_fit(const ImageOptions& image, TermKind kind) {
  return with_units_as_numbers(image.regularizers).strength(kind) > 0 || guessed_regularizers(image).strength(kind) > 0;
}

RegularizerOptions guessed_regularizers(const ImageOptions& image) {
  auto guessed = image.regularizers;
  guessed.strengths = {};
  const auto& all = all_regularizers();
  std::istringstream names(image.guess_lambda);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = std::find_if(all.begin(), all.end(), [&](TermKind kind) { return option_of(kind) == name; });
    if (found == all.end()) {
      std::vector<std::string> known(all.size());
      std::transform(all.begin(), all.end(), known.begin(), [](TermKind kind) { return option_of(kind); });
      const auto last = std::exchange(known.back(), {});
      known.pop_back();
      throw UsageError(error_text("--guess-lambda", name, "is none of the regularisers",
                                  fmt::format("name {} or {}", fmt::join(known, ", "), last)));
    }
    if (image.regularizers.strength(*found) != 0 || image.regularizers.given.contains(name)) {
      throw UsageError(error_text("--guess-lambda", name, fmt::format("given with --{}", name), "leave one of them out"));
    }
    guessed.strength(*found) = 1;
  }
  return guessed;
}

std::vector<double> LambdaRange::values() const {
  std::vector<double> all;
  for (std::int64_t i = 0; i < points; ++i)
    all.push_back(low * std::pow(high / low, static_cast<double>(i) / static_cast<double>(points - 1)));
  return all;
}

SearchedLambda parse_searched(const std::string& option, const std::string& text) {
  if (text == "cv") return {text, std::nullopt};
  const auto first = text.find(':'), second = text.find(':', first + 1);
  const auto refuse = [&](const char* limit) {
    return UsageError(error_text("--" + option, text, limit, "give it as 0.1U:10U:5 or 1e-4:1e-2:5"));
  };
  if (second == std::string::npos) throw refuse("must be LO:HI:N, the least, the largest, and how many values");
  auto low = text.substr(0, first), high = text.substr(first + 1, second - first - 1);
  const bool in_units = low.ends_with('U');
  if (in_units != high.ends_with('U')) throw refuse("has one end in units of noise and one without");
  if (in_units) low.pop_back(), high.pop_back();
  const LambdaRange range{parse_number(option, low, Range::positive()), parse_number(option, high, Range::positive()),
                          parse_integer(option, text.substr(second + 1), Range::between(2, 1000)), in_units};
  if (!(range.low < range.high)) throw refuse("must have its least value first");
  return {text, range};
}

Search::Kind search_of(const ImageOptions& image) {
  if (image.crossval.search) return *image.crossval.search;
  const auto& searched = image.regularizers.searched;
  const bool has_values =
      std::any_of(searched.begin(), searched.end(), [](const auto& entry) { return entry.second.range.has_value(); });
  return has_values ? Search::Kind::grid : Search::Kind::compass;
}

/// @throws UsageError where a regularizer lacks a setting that has no usual value
void check_settings_of_regularizers(const ImageOptions& image) {
  for (const auto kind : all_regularizers()) {
    const auto& settings = regularizer_of(kind).settings;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (image.regularizers.settings_of(kind)[i] || !in_fit(image, kind)) continue;
      throw UsageError(error_text("--" + settings[i].option, "missing",
                                  fmt::format("--{} {}", option_of(kind), settings[i].missing),
                                  fmt::format("add --{} {}", settings[i].option, settings[i].unit)));
    }
  }
}

std::vector<SkyOffset> parse_points(const std::string& list) {
  std::vector<SkyOffset> places;
  if (list == "auto") return places;
  for (const auto& item : list_items(list, ';')) places.push_back(parse_offset("points", item));
  return places;
}

void check_sign(const ImageOptions& image) {
  if (image.sign != PixelSign::either) return;
  for (const auto kind : all_regularizers()) {
    if (!regularizer_of(kind).least_pixel || !in_fit(image, kind)) continue;
    throw UsageError(error_text("--" + option_of(kind), "given", "it is of pixels that are not negative, and these may be",
                                "leave it out, or take --sign positive"));
  }
}

/// Whether a given strength leaves it to the program: auto, or cv, of one that is in a fit by itself.
bool leaves_it(const RegularizerOptions& r, const std::string& name) {
  const auto& kinds = all_regularizers();
  const bool is_usual = std::any_of(kinds.begin(), kinds.end(), [&](TermKind kind) {
    return option_of(kind) == name && regularizer_of(kind).automatic.has_value();
  });
  const auto search = r.searched.find(name);
  return is_usual && (r.automatic.contains(name) || (search != r.searched.end() && !search->second.range));
}

/// Regularizers are in a fit by themselves where all that is said leaves it to the program.
void settle_units(ImageOptions& image) {
  auto& r = image.regularizers;
  const bool asked = !image.guess_lambda.empty() ||
                     !std::all_of(r.given.begin(), r.given.end(), [&](const std::string& name) { return leaves_it(r, name); });
  const bool searches = image.searches_by_itself && r.searched.empty();
  for (const auto kind : all_regularizers()) {
    const auto name = option_of(kind);
    const auto& regularizer = regularizer_of(kind);
    if (!regularizer.automatic || r.given.contains(name)) continue;
    const bool is_searched = !asked && searches && regularizer.searched_by_itself;
    if (asked) r.in_units.erase(name);
    if (is_searched) r.searched[name] = {};
    if (asked || is_searched) r.automatic.erase(name);
  }
  if (image.searches_by_itself && r.searched.empty()) {
    throw UsageError(error_text("mpol crossval", "every LAMBDA is given", "there is nothing to choose",
                                "give one as cv or LO:HI:N, or leave all out"));
  }
}

void settle(ImageOptions& image) {
  if (!image.dry_run) settle(image.output);
  image.data.set.mode = image.mode;
  settle(image.data);
  settle_units(image);
  const auto chosen = choose_optimizer(image);
  if (!image.epochs) image.epochs = chosen.usual_epochs();
  TrainOptions update;
  apply(image.update, *image.epochs, update);
  check_settings_of_regularizers(image);
  check_sign(image);
  image.data.parts = std::make_shared<DataParts>();
  if (!image.fit_blocks.empty() || (folds_are_blocks(image) && !image.data.blocks.empty())) {
    image.data.origins = std::make_shared<DataOrigins>();
    const auto kinds = parse_block_kinds(image.data.blocks);
    image.data.origins->with_times = std::find(kinds.begin(), kinds.end(), BlockKind::time) != kinds.end();
  }
  if (!image.is_gaussian() && image.crossval.score != Score::folds) {
    throw UsageError(error_text("--score", choice_name(image.crossval.score, score_choices),
                                "Stein's risk and generalized cross-validation are for Gaussian noise",
                                "leave it out, or take --noise gaussian"));
  }
  if (!image.is_gaussian() && !image.likelihood_kind().goes_through_samples) {
    throw UsageError(error_text("--noise", choice_name(image.noise, noise_choices),
                                fmt::format("the {} likelihood is for Gaussian noise alone", image.likelihood),
                                "add --likelihood loose"));
  }
  if (asks_for_convex(image)) {
    if (const auto why = obstacle_to_pogm(image); !why.empty())
      throw UsageError(
          error_text("--optimizer", choice_name(image.optimizer, optimizer_choices), why, "leave it out, or choose adam"));
  }
  if (image.batch_size && image.optimizer == OptimizerKind::lbfgs) {
    throw UsageError(error_text("--batch-size", fmt::format("{}", *image.batch_size), "L-BFGS compares values of the same data",
                                "add --optimizer adam or leave this out"));
  }
  if (!image.data.more_data.empty() && image.mode == ImageMode::cube) {
    throw UsageError(
        error_text("--more-data", "given with --mode cube", "several files make one continuum image", "leave one of them out"));
  }
  const auto cuda = find_backend(c10::DeviceType::CUDA);
  if (image.step == StepKind::captured && !(cuda && cuda->compiled_in())) {
    throw UsageError(
        error_text("--step", choice_name(image.step, step_choices), "this build records no CUDA graphs", "use --step auto"));
  }
  parse_stop_relative(image.stop_relative);
  if (image.samples == 1)
    throw UsageError(error_text("--samples", "1", "one fit tells no error", "take 2 or more, or 0 for no map of errors"));
  image.structures = structures_text(parse_structures(image.structures));
  if (auto* file = std::get_if<StartFile>(&image.start)) file->path = std::filesystem::absolute(file->path).lexically_normal();
  for (auto* path : {&image.mask, &image.kernel_folder}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal();
  }
}

StopRelative parse_stop_relative(const std::string& text) {
  if (text.empty()) return {};
  StopRelative stop;
  const auto colon = text.find(':');
  stop.change = parse_number("stop-relative", text.substr(0, colon), Range::positive());
  if (colon != std::string::npos) {
    stop.window = parse_integer("stop-relative", text.substr(colon + 1), Range::between(1, 1e15));
  }
  return stop;
}

}  // namespace mpol::cli
