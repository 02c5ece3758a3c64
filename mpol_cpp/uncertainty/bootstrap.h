#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/uncertainty/dirty_noise.h>
#include <mpol_cpp/uncertainty/image_growth.h>

namespace mpol {

/// Options of a Bootstrap.
struct BootstrapOptions {
  /// How many images are fitted, >= 2: an error has one of about 1/sqrt(2 samples) of its own.
  TORCH_ARG(std::int64_t, samples) = 64;
  /// How many of the samples are observed and fitted once more, 0 to `samples` (BootstrapSamples::refits).
  TORCH_ARG(std::int64_t, refits) = 0;
  /// Seed of the noise: the same seed gives the same samples.
  TORCH_ARG(std::uint64_t, seed) = 0;
  /// How much larger the noise is than the weights say: the root of chi^2/(2 samples) of the fit, where it is to be trusted.
  TORCH_ARG(double, noise_factor) = 1;
  /// Tolerance of each fit, as TrainOptions::tolerance, but looked at from few iterations on.
  TORCH_ARG(double, tolerance) = 5e-3;
  /// Iterations after which a fit ends though it has not settled.
  TORCH_ARG(std::int64_t, most_iterations) = 2000;
  /// After each fit, with its number from 0 on; what it throws ends all.
  TORCH_ARG(std::function<void(std::int64_t sample)>, on_sample) = {};
};

/// What a Bootstrap gives: (…, nchan, npix, npix) float32 on the CPU, sky orientation, Jy/arcsec^2.
struct BootstrapSamples {
  Tensor images;  ///< (samples, …)
  /// (refits, …): fits to simulated data of the first samples, as those are of the fitted image. An image that a fit has smoothed
  /// loses less in the next one: by how much less tells how far the samples' errors fall short (error_maps).
  Tensor refits;
  /// What data still hold of the fitted image: of the widths of growth_widths() that where most flux is, if the width is 0 or the
  /// growth is more than twice what noise alone makes it.
  ImageGrowth growth = {};
  /// What flux_seen() says of the fitted image, where the caller puts it there; else undefined.
  Tensor seen = {};
};

/// Images that the same fit makes of other data: of the fitted image itself, observed with the same baselines and noise of the
/// same weights (the parametric bootstrap). How they differ from the fitted image, by noise and by what the priors take away, is
/// how the fitted image differs from the sky, as far as the fitted image is like it.
///
///   d_i = F x + e_i,   x_i = argmin chi^2(x; d_i)/(2 N) + sum of lambda R(x)
///
/// Data that differ tilt the objective by a linear term: kernels and curvature are shared, and each fit begins at the fitted
/// image.
/// Source: Efron & Tibshirani 1993, chapter 6; Hall & Martin 1988 (the bootstrap of samples).
class Bootstrap {
 public:
  /// Why the errors of a model's fit to an objective cannot be sampled; empty when they can: the fit must be convex.
  static std::string obstacle(ImageModel& model, const Objective& objective);

  /// @param model  of one problem, fitted; stays as it is
  /// @throws ValueError where there is an obstacle, and for options out of range
  Bootstrap(std::shared_ptr<GriddedNetImpl> model, Objective objective, BootstrapOptions options = {});

  /// The samples, and as many refits as the options say.
  BootstrapSamples sample(const DirtyNoise& noise) const;

  /// How many times more the residual image of the fit (the slope of chi^2 at it: natural weights, the whole field) scatters than
  /// those of the samples, root mean squares: above 1 where visibilities share errors, or show what the model cannot. What
  /// priors leave in a residual is in both. Without a unit; as many samples are fitted as the options say.
  double residual_ratio(const DirtyNoise& noise) const;

 private:
  std::shared_ptr<GriddedNetImpl> model_;
  Objective objective_;
  BootstrapOptions options_;
};

}  // namespace mpol
