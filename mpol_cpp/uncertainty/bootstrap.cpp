#include <mpol_cpp/uncertainty/bootstrap.h>

#include <cmath>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/pogm.h>
#include <mpol_cpp/uncertainty/tilted_function.h>

namespace mpol {
namespace {

void check_bootstrap(const BootstrapOptions& options) {
  if (options.samples() < 2) throw ValueError(fmt::format("{} samples tell no spread: take at least 2", options.samples()));
  if (options.refits() < 0 || options.refits() > options.samples()) {
    throw ValueError(
        fmt::format("{} refits of {} samples; there must be 0 to {}", options.refits(), options.samples(), options.samples()));
  }
  if (!(options.noise_factor() > 0) || !std::isfinite(options.noise_factor()))
    throw ValueError(fmt::format("the noise factor is {}; it must be above 0", options.noise_factor()));
  if (!(options.tolerance() > 0)) throw ValueError(fmt::format("the tolerance is {}; it must be above 0", options.tolerance()));
  constexpr std::int64_t fewest = 24;
  if (options.most_iterations() < fewest)
    throw ValueError(fmt::format("{} iterations are too few for a fit: allow {} or more", options.most_iterations(), fewest));
}

/// Fits to data that are simulated of a fitted image.
class SimulatedFits {
 public:
  SimulatedFits(std::shared_ptr<GriddedNetImpl> model, const Objective& objective, const BootstrapOptions& options)
      : model_(std::move(model)),
        objective_(objective),
        options_(options),
        before_(objective.likelihood().working_state()),
        function_(model_, objective, CubeProximal::By::kernels, Parts::images),
        tilted_(function_),
        fitted_(function_.images().clone().view({1, -1, function_.images().size(-2), function_.images().size(-1)})) {
    // The fitted image itself first: for its dual image, and so that samples differ from an image of their own tolerance.
    fit(fitted_);
    dual_ = function_.map().dual();
    state_ = likelihood().working_state();
    slope_ = slope_at(fitted_);
  }
  SimulatedFits(const SimulatedFits&) = delete;
  SimulatedFits& operator=(const SimulatedFits&) = delete;
  ~SimulatedFits() { likelihood().load_working_state(before_); }

  /// The slope of chi^2/(2 N) by the sky at the fitted image, (1, nchan, npix, npix).
  const Tensor& slope() const { return slope_; }

  /// BootstrapSamples::growth of the fitted image.
  ImageGrowth growth() {
    const auto& coords = model_->coords();
    const auto sky = model_->smoothed(fitted_);
    const auto empty = slope_at_sky(at::zeros_like(sky));
    ImageGrowth growth;
    Tensor most;  // flux that data still hold
    for (const double width : growth_widths(coords)) {
      const auto smoothed = smoothed_to(sky, coords, width);
      const auto over = [&](const Tensor& slope) {
        return (smoothed * slope).sum({-2, -1}, false, torch::kFloat64)[0].to(torch::kCPU);
      };
      const auto curvature = over(slope_at_sky(smoothed) - empty);
      const auto share = at::where(curvature > 0, -over(slope_) / curvature, at::zeros_like(curvature));
      const auto flux = share * smoothed.sum({-2, -1}, false, torch::kFloat64)[0].to(torch::kCPU);
      const auto widths = at::full_like(share, width);
      if (width == 0) {
        growth = {share, widths};
        most = flux;
        continue;
      }
      const auto noise = options_.noise_factor() / (curvature * objective_.normalizer()).sqrt();
      const auto takes = (flux.abs() > most.abs()).logical_and(share.abs() > significant * noise);
      growth = {at::where(takes, share, growth.share), at::where(takes, widths, growth.width)};
      most = at::where(takes, flux, most);
    }
    return growth;
  }

  /// Fits data of the fitted image and other noise. @return its base pixels
  Tensor fit_to(const DirtyNoise& noise, std::int64_t number) { return fit_to_data_of(fitted_, slope_, noise, number); }

  /// The same of a sample as the sky. @param sample  its base pixels
  Tensor refit(const Tensor& sample, const DirtyNoise& noise, std::int64_t number) {
    likelihood().load_working_state(state_);
    return fit_to_data_of(sample, slope_at(sample), noise, first_of_refits + number);
  }

  /// The slope of chi^2/(2 N) of the data that were simulated last.
  Tensor simulated_slope_at(const Tensor& images) { return slope_at(images) - moved_; }

 private:
  static constexpr std::int64_t first_of_refits = std::int64_t{1} << 32;  // number of their noise, whatever that of samples
  static constexpr double significant = 2;                                // standard deviations, of growth at a width

  Likelihood& likelihood() const { return objective_.likelihood(); }

  /// @param slope  of chi^2/(2 N) of the observed data at `sky`
  Tensor fit_to_data_of(const Tensor& sky, const Tensor& slope, const DirtyNoise& noise, std::int64_t number) {
    // The data are moved to those of the image: b - T x less.
    const auto drawn =
        noise.draw(options_.seed(), static_cast<std::uint64_t>(number)) * (options_.noise_factor() / objective_.normalizer());
    moved_ = slope + drawn.to(slope.options()).unsqueeze(0);
    tilted_.set_tilt(model_->smoothed(moved_.contiguous()));
    likelihood().load_working_state(state_);
    function_.map().set_dual(dual_);
    auto images = sky.clone();
    fit(images);
    return images;
  }

  void fit(Tensor& images) {
    Pogm pogm(tilted_, images.view(function_.images().sizes()), {.curvatures = curvatures_, .most_passes = passes_to_settle});
    settle(pogm, options_.most_iterations(), options_.tolerance(), [&] { return function_.scales(); });
    curvatures_ = pogm.curvatures();
  }

  Tensor slope_at(const Tensor& images) { return slope_at_sky(model_->smoothed(images)); }

  Tensor slope_at_sky(const Tensor& sky) {
    auto slope = at::empty_like(sky);
    auto slope_of_model = slope.view(model_->base().sizes());
    likelihood().value_and_gradient(sky.view(model_->base().sizes()), slope_of_model, Accumulate::overwrite);
    return slope.div_(2 * objective_.normalizer());
  }

  std::shared_ptr<GriddedNetImpl> model_;
  const Objective& objective_;
  const BootstrapOptions& options_;
  NamedTensors before_, state_;  // of the likelihood
  ConvexObjective function_;
  TiltedFunction tilted_;
  std::vector<double> curvatures_;
  Tensor fitted_, dual_, slope_, moved_;
};

double mean_square(const Tensor& values) { return values.to(torch::kCPU, torch::kFloat64).square().mean().item<double>(); }

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

BootstrapSamples Bootstrap::sample(const DirtyNoise& noise) const {
  const torch::NoGradGuard no_grad;
  SimulatedFits fits(model_, objective_, options_);
  const auto room = [&](std::int64_t count) {
    auto shape = fits.slope().sizes().vec();
    shape.front() = count;
    return at::empty(shape, torch::kFloat32);
  };
  BootstrapSamples samples{room(options_.samples()), room(options_.refits()), fits.growth()};
  std::int64_t fitted = 0;
  const auto keep = [&](const Tensor& images, Tensor place) {
    place.copy_(model_->smoothed(images)[0]);
    if (options_.on_sample()) options_.on_sample()(fitted);
    ++fitted;
  };
  for (std::int64_t i = 0; i < options_.samples(); ++i) {
    const auto images = fits.fit_to(noise, i);
    keep(images, samples.images[i]);
    if (i < options_.refits()) keep(fits.refit(images, noise, i), samples.refits[i]);
  }
  return samples;
}

double Bootstrap::residual_ratio(const DirtyNoise& noise) const {
  const torch::NoGradGuard no_grad;
  SimulatedFits fits(model_, objective_, options_);
  double simulated = 0;
  for (std::int64_t i = 0; i < options_.samples(); ++i) {
    simulated += mean_square(fits.simulated_slope_at(fits.fit_to(noise, i))) / static_cast<double>(options_.samples());
    if (options_.on_sample()) options_.on_sample()(i);
  }
  return std::sqrt(mean_square(fits.slope()) / simulated);
}

}  // namespace mpol
