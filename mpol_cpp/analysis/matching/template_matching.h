#pragma once

#include <cstdint>
#include <optional>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/analysis/matching/polar_templates.h>

namespace mpol {

/// What is compared of an image I and a turned template T, with sums over all bins and weights w of their radii.
enum class MatchScore {
  correlation,  ///< sum w (I - mean I)(T - mean T) / (|I - mean I| |T - mean T|), from -1 to 1
  cosine,       ///< sum w I T / (|I| |T|)
  projection,   ///< sum w I T / |T|, in the image's unit
  product,      ///< sum w I T
};

/// Whether templates are tried as they are only, or mirrored about azimuth 0 as well.
enum class Mirrors {
  none,  ///< as they are
  both   ///< as they are, and mirrored
};

/// Where an angle may lie.
enum class AngleSteps {
  bins,      ///< whole bins
  parabola,  ///< the top of the parabola through the best bin and its neighbours
};

/// How templates are matched.
struct MatchOptions {
  /// Matches of each image, all of other templates; as many as there are templates at most.
  TORCH_ARG(std::int64_t, n_best) = 1;
  /// What is largest at the best match.
  TORCH_ARG(MatchScore, score) = MatchScore::correlation;
  /// Whether mirrored templates count.
  TORCH_ARG(Mirrors, mirrors) = Mirrors::both;
  /// How finely angles are told.
  TORCH_ARG(AngleSteps, angles) = AngleSteps::bins;
  /// Weight of the bins of each radius, (nr), not negative; undefined: 1. The area of bins makes it the score of the plane.
  TORCH_ARG(Tensor, weights);
  /// Templates of each image that are turned: those that are best by their profiles in radius; at least n_best.
  /// Unset: the fraction of all, rounded.
  TORCH_ARG(std::optional<std::int64_t>, keep) = std::nullopt;
  /// That fraction, in (0, 1].
  TORCH_ARG(double, keep_fraction) = 1;
  /// What the product of profiles is multiplied by in that choice, (nr); undefined: 1. pyxem takes 0, 1/nr, 2/nr, …
  TORCH_ARG(Tensor, coarse_weights);
  /// Azimuth of the first sample in bins: 0.5 is the middle of a bin that begins at azimuth 0, as PolarIntegrator has it; 0 for
  /// samples at azimuth 0, as pyxem has them. Only angles of mirrored templates depend on it.
  TORCH_ARG(double, first_azimuth) = 0.5;
  /// Bytes for all that is held at one time beside images and templates themselves, about. Results depend on it by rounding only.
  TORCH_ARG(std::int64_t, memory_budget) = std::int64_t{1} << 30;
};

/// The best templates of each image, best first; on the images' device. Leading dimensions are the images'.
struct Matches {
  Tensor index;  ///< (…, n_best) int64, of the template
  Tensor angle;  ///< (…, n_best) float64, radian in [0, 2 pi): by it the (mirrored) template is turned towards growing azimuth
  Tensor mirrored;  ///< (…, n_best) bool; templates that are their own mirror image, to rounding, are not mirrored
  Tensor score;     ///< (…, n_best) of the best whole bin; dtype of the images
};

/// The best templates of a library for images in polar coordinates, turned by whole bins and mirrored.
///
/// Templates of maps are correlated by FFT over azimuth and products of matrices over radius, for each frequency one of all
/// images and templates of a batch. On the CPU templates of points are summed point by point, for all angles at once, which is
/// faster up to some hundred points. An image or a template without any contrast has the score 0.
/// @param maps  (…, nr, nphi) finite, float32 or float64, any device; PolarIntegrator's means, for example
/// @throws ShapeError for maps of another shape than the templates'; DataError for values that are not finite; ValueError for
///         options out of range, and a budget that does not hold one image and one template
/// Source: the two steps and the mirror images are those of pyxem (Cautaerts et al. 2022).
Matches match_templates(const Tensor& maps, const PolarTemplates& templates, const MatchOptions& options = {});

/// Score of every angle, of images with one template each.
/// @param index  (…) int64, templates of the images; the options' n_best, keep and angles are not used
/// @return       (…, mirrors, nphi), dtype and device of the maps: [0] of the template, [1] of its mirror image where that is
///               tried; entry s is the turn by s bins, of the mirrored template by s + 2 first_azimuth bins
/// @throws as match_templates
Tensor rotation_scores(const Tensor& maps, const PolarTemplates& templates, const Tensor& index,
                       const MatchOptions& options = {});

/// The template of the best match of each image as it lies there: mirrored, turned by whole bins, and scaled to the image by
/// least squares with the options' weights; for MatchScore::correlation lifted, too. The image less this is its residual.
/// @param maps, templates, options  of the match  @param matches  of all the maps
/// @return (…, nr, nphi), dtype and device of the maps
/// @throws ShapeError for matches of other maps
Tensor matched_templates(const Tensor& maps, const PolarTemplates& templates, const Matches& matches,
                         const MatchOptions& options = {});

}  // namespace mpol
