#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>

namespace mpol {

/// By how much F = -ln(posterior) of an image may be above its minimum for images that hold a part `level` of the posterior at
/// least, whatever log-concave posterior of `unknowns` numbers N it is:
///
///   gamma - F* = the number below which a Gamma distribution of shape N, scale 1, has `level`: for N = 1 -ln(1 - level)
///
/// Along each ray from the minimum F is convex: where it is t above it at a radius r_t, it is t r/r_t above at most before, at
/// least beyond, so that no more of the ray's part, of density r^(N-1) exp(-F), lies beyond than of a Gamma distribution beyond
/// t. No smaller bound holds for all of them: that of exp(-|x|) is this one.
/// @throws ValueError unless 0 < level < 1 and there is an unknown
/// Source: the question, and the larger N + sqrt(16 N ln(3/(1 - level))), Pereyra 2017, theorem 3.1.
double highest_density_bound(double unknowns, double level);

/// Options of a StructureTest.
struct StructureTestOptions {
  /// The probability with which a structure has to be real, in (0, 1).
  TORCH_ARG(double, level) = 0.99;
  /// How much larger the noise is than the weights say: F is divided by its square.
  TORCH_ARG(double, noise_factor) = 1;
  /// The most fits for a structure; each makes `least_excess` larger, and any number gives one that is not too large.
  TORCH_ARG(std::int64_t, most_fits) = 8;
  /// Iterations after which a fit ends though it has not settled.
  TORCH_ARG(std::int64_t, most_iterations) = 2000;
  /// Called after each iteration; what it throws ends all.
  TORCH_ARG(std::function<void()>, on_iteration) = {};
};

/// What a StructureTest finds. F is in true units: chi^2/2 and the priors, N_norm times what a fit minimizes, over the square of
/// the noise factor.
struct JudgedStructure {
  std::int64_t pixels = 0;    ///< that are marked and may shine, of all channels
  double f_image = 0;         ///< F of the fitted image
  double filled_excess = 0;   ///< F of the image with the region filled, less that of the fitted one: all else as it is
  double least_excess = 0;    ///< the least that an image without its contrast costs, whatever it is elsewhere (lower bound)
  double places = 1;          ///< how many regions of its size the pixels that may shine have room for
  double bound = 0;           ///< gamma - F* of the structure's contrast alone, wherever in the image it might have been found
  double bound_of_image = 0;  ///< gamma - F* of all pixels
  std::vector<double> flux;   ///< that filling the region removed, Jy, of each channel; negative where it was a gap
  Tensor image, filled;       ///< (nchan, npix, npix) float64 on the CPU, sky orientation, Jy/arcsec^2
  Tensor least;               ///< the image of `least_excess`: how else such data can come about
  std::int64_t fits = 0;      ///< that were made for it

  /// Whether images without it lie outside of the credible region: least_excess > bound.
  bool is_real() const { return least_excess > bound; }
  /// The same by the bound of all pixels, which needs no Gaussian posterior and is far more than most data can pass.
  bool is_real_by_all_pixels() const { return least_excess > bound_of_image; }
  /// How many standard deviations of a Gaussian cost as much: sqrt(2 least_excess).
  double sigma() const;
};

/// Asks whether a structure of a fitted image, a clump or a gap, is in the sky or may be the noise's: the least F of an image
/// without it is compared with the bound of the credible region.
///
/// The region of the base pixels z is filled from its surroundings, s = harmonic_fill(z). The flux of its image x = S z above
/// that filling, with weights w = smooth_window(region) that fall to 0 at the region's edge,
///
///   c(y) = sum w (S y - S s) / sum w (S z - S s):   1 of the fitted image, 0 of the filled one
///
/// (below it, for a gap) is the structure's contrast. F of all images with c <= 0, whatever they are elsewhere and however they
/// spread their flux, is at least
///
///   D(m) = min_y F(y) + m c(y)   for any m >= 0,
///
/// whose largest value is looked for: each D is one fit of the same convex problem with a linear term. So flux that could as well
/// lie beside the region, which is then smaller than the data resolve, proves nothing. The contrast is one number; its marginal
/// is log-concave as the posterior is, and -ln of it is the least F up to a constant where the posterior is Gaussian, and nearly
/// so elsewhere: so D is compared with the bound of one unknown. As whoever marks a region has looked at the whole image, one
/// minus the level is shared by as many places as regions of its size have room in it (Bonferroni). Source: Cai, Pereyra &
/// McEwen 2018 (remove, inpaint, compare with the bound); Repetti, Pereyra & Wiaux 2019 (the least F).
class StructureTest {
 public:
  /// Why structures of a model's fit to an objective cannot be judged; empty when they can: as Bootstrap::obstacle.
  static std::string obstacle(ImageModel& model, const Objective& objective);

  /// @param model  of one problem, fitted; stays as it is
  /// @throws ValueError where there is an obstacle, and for options out of range
  StructureTest(std::shared_ptr<GriddedNetImpl> model, Objective objective, StructureTestOptions options = {});

  /// @param region  (npix, npix) or (nchan, npix, npix), not 0 on the structure and a beam around it
  /// @throws ShapeError for another shape; ValueError when no pixel is marked that may shine, or all of a channel
  JudgedStructure judge(const Tensor& region) const;

 private:
  std::shared_ptr<GriddedNetImpl> model_;
  Objective objective_;
  StructureTestOptions options_;
};

}  // namespace mpol
