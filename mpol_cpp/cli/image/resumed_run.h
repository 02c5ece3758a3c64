#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Config.hpp>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/uncertainty/fit_noise.h>

namespace mpol::cli {

// What a run writes into its checkpoints for the one that resumes it, and what that one makes of it.

/// Settings as in run.toml, device and instruction set.
Notes notes_of_run(const ImageOptions& options, const RunRecord& record);
/// Adds to them how many channels are fitted at a time.
void note_channels_at_once(Notes& notes, std::int64_t channels);
/// What fits have shown of their data, for which weights of the regularizers that nobody gave are set anew.
struct FitTraits {
  FitNoise noise;      ///< 1 where that of the weights is right
  double reduced = 0;  ///< chi^2/(2 N) of the fit that showed it; 0 as long as none has
  /// Share of the field, as filled_to_follow() says; of each channel where they have weights of their own.
  std::vector<double> filled = {usual_filled};
  int fits = 1;  ///< up to those with these weights
  /// Whether the fit only shows what the data are like, and another one follows that goes on until it has converged.
  bool looks = false;
  /// Whether the first fit was slow, so that its image was looked at before it had converged (epochs_of_early_look).
  bool slow = false;

  /// Whether the source fills another share, of any channel, than is usual.
  bool follows_source() const {
    return std::any_of(filled.begin(), filled.end(), [](double share) { return share != usual_filled; });
  }
  bool knows_noise() const { return reduced > 0; }
  bool ask_for_weights_of(const FitTraits& other) const {
    const bool are_usual = !follows_source() && !other.follows_source();  // of one share or of many
    return noise.factor() == other.noise.factor() && (are_usual || filled == other.filled);
  }
};

/// Adds the traits that weights were set anew for.
void note_traits(Notes& notes, const FitTraits& traits);
/// These, where the newest checkpoint in a run's folder of its state is of such a fit.
std::optional<FitTraits> traits_of_run(const std::filesystem::path& state);

/// What the newest checkpoint in OUT says of its run; nothing without one.
struct ResumedRun {
  std::optional<std::int64_t> threads;
  std::string settings;  ///< TOML; empty when the checkpoint does not have them
  std::string device, instruction_set;
  std::optional<std::int64_t> channels_at_once;  ///< where it is not all of them

  bool had_diagnostics() const;  ///< or may have had: the checkpoint does not tell
  bool had_events() const;       ///< for TensorBoard; or may have had
};
std::optional<ResumedRun> run_to_resume(const std::filesystem::path& out);

/// Warnings about what is not as it was and alters the last bits of the result.
std::vector<std::string> changes_since(const ResumedRun& before, const ImageOptions& options);

/// `mpol image -o OUT --resume` without DATA goes on with the settings of the run in OUT: these, as arguments that go before
/// the user's own. Empty when the verb, one that makes a fit, is not called so, or OUT does not have them.
/// @throws FileError, UsageError when they cannot be read
std::vector<std::string> resumed_arguments(const CLI::App& verb);

}  // namespace mpol::cli
