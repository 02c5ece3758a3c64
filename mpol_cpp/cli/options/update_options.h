#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::cli {

/// How adam, sgd and lbfgs make a step of a gradient.
struct UpdateOptions {
  std::optional<double> learning_rate;  ///< without one 0.3
  std::string schedule;                 ///< of the learning rate; empty: constant
  std::optional<double> momentum;       ///< of sgd; without one 0
  std::string betas;                    ///< of adam, "FIRST,SECOND"; empty: 0.9,0.999
  std::optional<double> weight_decay;   ///< of adam and sgd; without one 0

  /// The first of them that is given, as its option; empty: none is.
  std::string first_given() const;
};

/// Declares their options.
void declare(OptionSet& options, UpdateOptions& update);

/// What they say together with the others. @throws UsageError for a schedule or betas that are none
void apply(const UpdateOptions& update, std::int64_t epochs, TrainOptions& options);

}  // namespace mpol::cli
