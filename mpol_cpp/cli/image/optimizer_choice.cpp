#include <mpol_cpp/cli/image/optimizer_choice.h>

#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::cli {
namespace {

constexpr double usual_tolerance = 1e-3;

/// What asks for steps along gradients; empty: nothing.
std::string wish_for_gradients(const ImageOptions& options) {
  if (const auto given = options.update.first_given(); !given.empty()) return fmt::format("{} is given", given);
  if (!options.stop_relative.empty()) return "--stop-relative is given";
  return options.step == StepKind::automatic ? std::string() : "--step is given";
}

}  // namespace

bool asks_for_convex(const ImageOptions& options) { return options.optimizer && is_proximal(*options.optimizer); }

std::string obstacle_to_pogm(const ImageOptions& options) {
  if (!options.is_gaussian()) return fmt::format("{} noise is not convex", choice_name(options.noise, noise_choices));
  if (options.batch_size) return "each step sees another batch";
  for (const auto kind : all_regularizers()) {
    if (!in_fit(options, kind)) continue;
    if (regularizer_of(kind).convexity == Convexity::unknown)
      return fmt::format("no proximal map is known of {}", option_of(kind));
    if (options.sign == PixelSign::either && regularizer_of(kind).needs_positive_pixels)
      return fmt::format("no proximal map is known of {} with pixels of either sign", option_of(kind));
  }
  return {};
}

OptimizerChoice choose_optimizer(const ImageOptions& options) {
  const double tolerance = options.tolerance.value_or(usual_tolerance);
  if (options.optimizer)
    return {*options.optimizer, "asked for", asks_for_convex(options) ? std::optional(tolerance) : std::nullopt};
  auto why_not = wish_for_gradients(options);
  if (why_not.empty()) why_not = obstacle_to_pogm(options);
  if (why_not.empty()) return {OptimizerKind::pogm, "every term is convex and known", tolerance};
  if (!options.stop_relative.empty()) return {OptimizerKind::adam, std::move(why_not), {}};
  return {OptimizerKind::adam, std::move(why_not), tolerance};
}

}  // namespace mpol::cli
