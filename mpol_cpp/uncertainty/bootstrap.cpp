#include <mpol_cpp/uncertainty/bootstrap.h>

#include <cmath>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/pogm.h>
#include <mpol_cpp/uncertainty/tilted_function.h>

namespace mpol {
namespace {

void check_bootstrap(const BootstrapOptions& options) {
  if (options.samples() < 2) throw ValueError(fmt::format("{} samples tell no spread: take at least 2", options.samples()));
  if (!(options.noise_factor() > 0) || !std::isfinite(options.noise_factor()))
    throw ValueError(fmt::format("the noise factor is {}; it must be above 0", options.noise_factor()));
  if (!(options.tolerance() > 0)) throw ValueError(fmt::format("the tolerance is {}; it must be above 0", options.tolerance()));
  constexpr std::int64_t fewest = 24;
  if (options.most_iterations() < fewest)
    throw ValueError(fmt::format("{} iterations are too few for a fit: allow {} or more", options.most_iterations(), fewest));
}

}  // namespace

std::string Bootstrap::obstacle(ImageModel& model, const Objective& objective) {
  if (auto why = ConvexObjective::obstacle(model, objective); !why.empty()) return why;
  const auto problems = model.base().numel() / (model.base().size(-3) * model.base().size(-2) * model.base().size(-1));
  return problems == 1 ? std::string() : fmt::format("the model has {} problems", problems);
}

Bootstrap::Bootstrap(std::shared_ptr<GriddedNetImpl> model, Objective objective, BootstrapOptions options)
    : model_(std::move(model)), objective_(std::move(objective)), options_(std::move(options)) {
  check_bootstrap(options_);
  if (const auto why = obstacle(*model_, objective_); !why.empty())
    throw ValueError(fmt::format("the errors of this fit cannot be sampled: {}", why));
}

Tensor Bootstrap::sample(const DirtyNoise& noise) const {
  const torch::NoGradGuard no_grad;
  auto& likelihood = objective_.likelihood();
  const auto before = likelihood.working_state();
  ConvexObjective function(model_, objective_);
  TiltedFunction tilted(function);
  std::vector<double> curvatures;
  const auto fit = [&](Tensor& images) {
    Pogm pogm(tilted, images, {.curvatures = curvatures, .most_passes = passes_to_settle});
    settle(pogm, options_.most_iterations(), options_.tolerance(), [&] { return ConvexObjective::scales(function.losses(), 1); });
    curvatures = pogm.curvatures();
  };
  // The fitted image itself first: for its dual image, and so that samples differ from an image of their own tolerance.
  auto fitted = function.images().clone();
  fit(fitted);
  const auto dual = function.map().dual();
  const auto state = likelihood.working_state();

  // The data are moved to those of the fitted image: b - T x less.
  const auto sky = model_->smoothed(fitted);
  auto slope = at::empty_like(sky);
  auto slope_of_model = slope.view(model_->base().sizes());
  likelihood.value_and_gradient(sky.view(model_->base().sizes()), slope_of_model, Accumulate::overwrite);
  slope.div_(2 * objective_.normalizer());
  auto samples = at::empty({options_.samples(), sky.size(1), sky.size(2), sky.size(3)}, torch::kFloat32);
  for (std::int64_t i = 0; i < options_.samples(); ++i) {
    const auto drawn =
        noise.draw(options_.seed(), static_cast<std::uint64_t>(i)) * (options_.noise_factor() / objective_.normalizer());
    tilted.set_tilt(model_->smoothed((slope + drawn.to(slope.options()).unsqueeze(0)).contiguous()));
    likelihood.load_working_state(state);
    function.map().set_dual(dual);
    auto images = fitted.clone();
    fit(images);
    samples[i].copy_(model_->smoothed(images)[0]);
    if (options_.on_sample()) options_.on_sample()(i);
  }
  likelihood.load_working_state(before);
  return samples;
}

}  // namespace mpol
