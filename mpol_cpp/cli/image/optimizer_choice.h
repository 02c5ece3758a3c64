#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::cli {

/// The optimiser of a fit, as --optimizer names it or as `auto` chooses it.
struct OptimizerChoice {
  OptimizerKind kind;
  std::string reason;               ///< "asked for", or why it was chosen
  std::optional<double> tolerance;  ///< within which the fit is to converge; nothing: it takes exactly --epochs

  bool is_convex() const { return is_proximal(kind); }
  /// The epochs where none are asked for: MPoL's exact number, or the most that a fit may take to converge.
  std::int64_t usual_epochs() const { return tolerance ? 20'000 : 500; }
};

/// Whether --optimizer names one that goes to the optimum of a convex objective.
bool asks_for_convex(const ImageOptions& options);

/// Why no convex optimiser can fit the objective; empty: one can.
std::string obstacle_to_pogm(const ImageOptions& options);

/// `auto` takes POGM where the objective is convex and every part of it is known, otherwise Adam; and Adam where an option asks
/// for something that only steps along gradients have.
OptimizerChoice choose_optimizer(const ImageOptions& options);

}  // namespace mpol::cli
