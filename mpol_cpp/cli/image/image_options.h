#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/start_image.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/fit_choices.h>
#include <mpol_cpp/cli/options/update_options.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/likelihood_kind.h>
#include <mpol_cpp/regularizers/list.h>

namespace mpol::cli {

/// The values of a strength to choose from.
struct LambdaRange {
  double low, high;
  std::int64_t points;
  bool in_units;

  std::vector<double> values() const;  ///< evenly in their logarithm
};
/// A strength that cross-validation chooses.
struct SearchedLambda {
  std::string text = "cv";                          ///< as it was asked for: that, or "LO:HI:N" with or without units
  std::optional<LambdaRange> range = std::nullopt;  ///< the same; nothing for "cv"
};
/// @throws UsageError naming the option
SearchedLambda parse_searched(const std::string& option, const std::string& text);

/// A bound of chi^2/(2 N).
struct ChiSquaredBound {
  std::string text;             ///< as it was asked for, "auto" or a number
  std::optional<double> value;  ///< the same; nothing for "auto"
};

/// Strength lambda of each regularizer, and what some of them need besides.
struct RegularizerOptions {
  std::array<double, regularizer_count> strengths = {};
  std::array<std::array<std::optional<double>, regularizers::most_settings>, regularizer_count> settings = {};
  /// Strengths in units of noise (objective/noise_unit.h) by the names of their options, in which the value above is then 0.
  std::map<std::string, double> in_units;
  std::set<std::string> given;                     ///< strengths that somebody set, by the names of their options
  std::set<std::string> automatic;                 ///< those of in_units that nobody gave a number: the data will (weigh_terms)
  std::map<std::string, SearchedLambda> searched;  ///< those of in_units that cross-validation chooses

  RegularizerOptions();  ///< what a fit has where nothing is asked for

  double& strength(TermKind kind) { return strengths[static_cast<std::size_t>(kind)]; }
  double strength(TermKind kind) const { return strengths[static_cast<std::size_t>(kind)]; }
  auto& settings_of(TermKind kind) { return settings[static_cast<std::size_t>(kind)]; }
  const auto& settings_of(TermKind kind) const { return settings[static_cast<std::size_t>(kind)]; }
};

struct ImageOptions;
/// @throws UsageError where pixels may be negative and a regularizer has no value there
void check_sign(const ImageOptions& image);

/// The places of a list "EAST,NORTH[;EAST,NORTH...]", arcsec from the phase centre; none for auto. @throws UsageError
std::vector<SkyOffset> parse_points(const std::string& list);

/// The name of a regularizer's option, without its dashes: that of its term, with - for _.
std::string option_of(std::string term);
std::string option_of(TermKind kind);

/// How cross-validation chooses strengths.
struct CrossvalOptions {
  std::int64_t folds = 5;
  Score score = Score::folds;
  FoldSplit split = FoldSplit::random;
  bool check_split = false;            ///< try the choice by folds of the other kind
  std::optional<Search::Kind> search;  ///< nothing: see search_of()
  std::int64_t points = 16;
  std::optional<std::int64_t> folds_at_once;  ///< fitted as one batch; nothing: see CrossValidatorOptions
};

/// Settings of `mpol image`.
struct ImageOptions {
  OutputOptions output;
  DataOptions data;
  RegularizerOptions regularizers;
  CrossvalOptions crossval;
  bool searches_by_itself = false;  ///< `mpol crossval`: strengths that nobody gave are searched
  std::string fit_blocks;           ///< comma-separated of shift, amplitude, weight; empty: nothing
  std::string points;               ///< auto, or places of point sources: see parse_points(); empty: none
  std::string guess_lambda;         ///< comma-separated names of regularisers

  std::string likelihood = all_likelihoods().front().name;
  NoiseModel::Kind noise = NoiseModel::Kind::gaussian;
  std::optional<double> degrees_of_freedom;  ///< of Student's noise
  std::optional<std::int64_t> batch_size;    ///< visibilities of a channel that each step of the loose likelihood sees
  bool in_chunks = false;                    ///< --batch-size auto: it sees all of them, as many at a time as memory holds
  std::optional<Sampling> sampling;          ///< which make a batch; nothing: any
  Normalize normalize = Normalize::cells;
  std::optional<ChiSquaredBound> chi2_bound;  ///< that the weights are made for; nothing: no bound
  std::optional<ImageMode> mode;              ///< nothing: as the arrays' shape says
  ScatterCheck scatter_check = ScatterCheck::warn;

  std::optional<OptimizerKind> optimizer;  ///< nothing: see choose_optimizer()
  UpdateOptions update;                    ///< of adam, sgd and lbfgs
  std::optional<double> tolerance;         ///< of fits that are to converge; without one 1e-3
  std::optional<std::int64_t> epochs;      ///< settled: there is a number
  std::string stop_relative;               ///< "R" or "R:WINDOW"; empty: off
  Start start;
  std::filesystem::path mask;
  bool no_hann = false;
  std::optional<PixelSign> sign;  ///< nothing: what the data's Stokes parameter needs, once they are read
  std::int64_t seed = 0;
  StepKind step = StepKind::automatic;

  std::optional<std::int64_t> samples;  ///< of the image's errors; 0: none, nothing: see usual_errors()
  bool keep_samples = false;            ///< write them
  std::string structures;               ///< that are judged: see parse_structures(); empty: none

  std::optional<std::int64_t> checkpoint_interval;   ///< epochs
  std::optional<std::int64_t> diagnostics_interval;  ///< epochs
  bool tensorboard = false;                          ///< files of events
  std::optional<double> memory_limit;                ///< GiB
  std::optional<std::int64_t> channels_at_once;      ///< of a cube; nothing: see choose_channel_groups()
  std::filesystem::path kernel_folder;               ///< for the kernels of the exact likelihood; empty: memory
  std::optional<Shard> shard;                        ///< what several ranks share; nothing: see choose_sharding()
  std::optional<double> rank_timeout;                ///< seconds
  bool resume = false;
  bool dry_run = false;
  bool keep_diverged = false;
  bool deterministic = false;
  bool split_channels = false;

  /// What is known of the likelihood.
  const LikelihoodKind& likelihood_kind() const { return mpol::likelihood_kind(likelihood); }
  bool is_gaussian() const { return noise == NoiseModel::Kind::gaussian; }  ///< of the noise
};

/// Declares the options of `mpol image`, in the order in which its help shows them.
void declare(OptionSet& options, ImageOptions& image);

/// How points are searched: as asked for, else all where values are given for a strength, or step by step.
Search::Kind search_of(const ImageOptions& image);

/// Whether somebody asked for errors by samples.
inline bool asks_for_samples(const ImageOptions& image) { return image.samples.value_or(0) > 0; }

/// What cannot be seen from one option alone. @throws UsageError
void settle(ImageOptions& image);

/// With the strengths in units of noise where the numbers are, as if their units were 1.
RegularizerOptions with_units_as_numbers(RegularizerOptions options);

/// Whether a regulariser is in the fit, with a strength of its own or one to be guessed.
bool in_fit(const ImageOptions& image, TermKind kind);

/// The options of the regularisers named by --guess-lambda, each with strength 1, and of no others. @throws UsageError
RegularizerOptions guessed_regularizers(const ImageOptions& image);

/// A stop criterion "R" or "R:WINDOW".
struct StopRelative {
  double change = 0;  ///< 0: off
  std::int64_t window = 10;
};
/// @throws UsageError
StopRelative parse_stop_relative(const std::string& text);

}  // namespace mpol::cli
