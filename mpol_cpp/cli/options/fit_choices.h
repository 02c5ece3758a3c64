#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <mpol_cpp/cli/program/choices.h>
#include <mpol_cpp/crossval/cross_validator.h>
#include <mpol_cpp/crossval/scan.h>
#include <mpol_cpp/datasets/visibility_sampler.h>
#include <mpol_cpp/likelihoods/noise_model.h>
#include <mpol_cpp/models/base_cube.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::cli {

// What `mpol image` lets its user choose by words.

/// The number of channels of an image.
enum class ImageMode {
  continuum,  ///< one, of all channels of the data
  cube        ///< as many as the data have
};

/// What is held out together in a cross-validation.
enum class FoldSplit {
  random,     ///< uv cells at random
  dartboard,  ///< bins of a dartboard
  blocks      ///< blocks of samples
};

/// What the ranks of `mpol image` share.
enum class Shard : std::int64_t {
  none = 1,      ///< nothing: the first does all
  visibilities,  ///< samples: the exact likelihood is made of sums over them, the loose one evaluated; the first makes the fit
  channels,      ///< each fits its own channels of a cube
  rows,          ///< rows of the kernels and transforms of the exact likelihood, in each step; the first makes the fit
};

inline constexpr auto noise_choices = std::to_array<NamedChoice<NoiseModel::Kind>>(
    {{"gaussian", NoiseModel::Kind::gaussian}, {"student", NoiseModel::Kind::student}});

inline constexpr auto sampling_choices = std::to_array<NamedChoice<Sampling>>(
    {{"random", Sampling::random}, {"compact", Sampling::compact}, {"uniform", Sampling::uniform}});

inline constexpr auto normalize_choices = std::to_array<NamedChoice<Normalize>>(
    {{"cells", Normalize::cells}, {"visibilities", Normalize::visibilities}, {"none", Normalize::none}});

inline constexpr auto image_mode_choices =
    std::to_array<NamedChoice<ImageMode>>({{"continuum", ImageMode::continuum}, {"cube", ImageMode::cube}});

/// Nothing is what choose_optimizer() finds.
inline constexpr auto optimizer_choices =
    std::to_array<NamedChoice<std::optional<OptimizerKind>>>({{"auto", std::nullopt},
                                                              {"pogm", OptimizerKind::pogm},
                                                              {"fista", OptimizerKind::fista},
                                                              {"admm", OptimizerKind::admm},
                                                              {"adam", OptimizerKind::adam},
                                                              {"sgd", OptimizerKind::sgd},
                                                              {"lbfgs", OptimizerKind::lbfgs}});

/// Nothing is what sign_of() finds.
inline constexpr auto sign_choices = std::to_array<NamedChoice<std::optional<PixelSign>>>(
    {{"auto", std::nullopt}, {"positive", PixelSign::positive}, {"either", PixelSign::either}});

inline constexpr auto step_choices = std::to_array<NamedChoice<StepKind>>(
    {{"auto", StepKind::automatic}, {"eager", StepKind::eager}, {"captured", StepKind::captured}, {"fused", StepKind::fused}});

inline constexpr auto score_choices =
    std::to_array<NamedChoice<Score>>({{"folds", Score::folds}, {"sure", Score::sure}, {"gcv", Score::gcv}});

inline constexpr auto split_choices = std::to_array<NamedChoice<FoldSplit>>(
    {{"random", FoldSplit::random}, {"dartboard", FoldSplit::dartboard}, {"blocks", FoldSplit::blocks}});

/// Nothing is a grid where values are given, else a compass.
inline constexpr auto search_choices = std::to_array<NamedChoice<std::optional<Search::Kind>>>(
    {{"auto", std::nullopt}, {"compass", Search::Kind::compass}, {"grid", Search::Kind::grid}, {"random", Search::Kind::random}});

/// Nothing is what choose_sharding() finds.
inline constexpr auto shard_choices = std::to_array<NamedChoice<std::optional<Shard>>>({{"auto", std::nullopt},
                                                                                        {"channels", Shard::channels},
                                                                                        {"visibilities", Shard::visibilities},
                                                                                        {"rows", Shard::rows},
                                                                                        {"none", Shard::none}});
inline std::string name_of(Shard shard) { return choice_name(std::optional(shard), shard_choices); }

}  // namespace mpol::cli
