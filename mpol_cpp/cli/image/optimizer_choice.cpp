#include <mpol_cpp/cli/image/optimizer_choice.h>

#include <algorithm>
#include <array>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::cli {
namespace {

constexpr double usual_tolerance = 1e-3;
constexpr std::array convex_optimizers = {OptimizerKind::pogm, OptimizerKind::fista, OptimizerKind::admm};

/// What asks for steps along gradients; empty: nothing.
std::string wish_for_gradients(const ImageOptions& options) {
  if (const auto given = options.update.first_given(); !given.empty()) return fmt::format("{} is given", given);
  if (!options.stop_relative.empty()) return "--stop-relative is given";
  return options.step == "auto" ? std::string() : "--step is given";
}

}  // namespace

bool asks_for_convex(const ImageOptions& options) {
  return std::any_of(convex_optimizers.begin(), convex_optimizers.end(),
                     [&](OptimizerKind kind) { return options.optimizer == to_string(kind); });
}

std::string obstacle_to_pogm(const ImageOptions& options) {
  if (options.noise != "gaussian") return fmt::format("{} noise is not convex", options.noise);
  if (options.batch_size) return "each step sees another batch";
  for (const auto kind : all_regularizers()) {
    if (regularizer_of(kind).convexity != Convexity::unknown || !in_fit(options, kind)) continue;
    return fmt::format("no proximal map is known of {}", option_of(kind));
  }
  return {};
}

OptimizerChoice choose_optimizer(const ImageOptions& options) {
  const double tolerance = options.tolerance.value_or(usual_tolerance);
  const auto& name = options.optimizer;
  for (const auto kind : convex_optimizers) {
    if (name == to_string(kind)) return {kind, "asked for", tolerance};
  }
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lbfgs}) {
    if (name == to_string(kind)) return {kind, "asked for", {}};
  }
  auto why_not = wish_for_gradients(options);
  if (why_not.empty()) why_not = obstacle_to_pogm(options);
  if (why_not.empty()) return {OptimizerKind::pogm, "every term is convex and known", tolerance};
  if (!options.stop_relative.empty()) return {OptimizerKind::adam, std::move(why_not), {}};
  return {OptimizerKind::adam, std::move(why_not), tolerance};
}

}  // namespace mpol::cli
