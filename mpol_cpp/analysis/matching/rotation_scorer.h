#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include <mpol_cpp/analysis/matching/polar_templates.h>
#include <mpol_cpp/analysis/matching/template_matching.h>

namespace mpol {

/// What is done to images and templates before they are multiplied: so scaled, a plain product is the score.
class MatchScaling {
 public:
  /// @param weights  (nr), or undefined  @throws ShapeError, ValueError for weights that cannot be
  MatchScaling(MatchScore score, const Tensor& weights, std::int64_t nr, std::int64_t nphi);

  /// @param maps  (count, nr, nphi); what has no contrast becomes 0
  Tensor images(const Tensor& maps) const;
  Tensor templates(const Tensor& maps) const;
  /// The factor of each point of templates of points. They are not centred, which does not matter beside a centred image.
  /// @param values  (points) float64 to be scaled
  Tensor points(const PolarTemplates::Points& points) const;
  /// Sums over azimuth of templates as `templates` scales them, each of length 1: (n, nr) float64 on the CPU.
  Tensor profiles(const PolarTemplates::Points& points) const;

 private:
  Tensor scaled(const Tensor& maps, bool normalized) const;

  bool centered_, images_normalized_, templates_normalized_;
  std::int64_t nphi_;
  Tensor weights_;  // (nr) float64 on the CPU
};

/// Rows of length 1, or of zeros where there is nothing. @param profiles  (…, nr)
Tensor normalized_profiles(const Tensor& profiles);

/// Scores of turned templates for scaled images: one way of computing them.
class RotationScorer {
 public:
  virtual ~RotationScorer() = default;

  /// Images that are scored at one time at most.
  virtual std::int64_t images_at_once() const = 0;
  /// Whether threads had better take images of their own than share each.
  virtual bool images_on_one_thread() const = 0;
  /// Sums over azimuth of the scaled templates, each of length 1 (0 where there is nothing): (n, nr).
  virtual Tensor profiles() const = 0;
  /// Images in the form in which the others take them. @param images  (count, nr, nphi), scaled
  virtual Tensor prepared(const Tensor& images) const = 0;
  /// The highest score over all angles, and over the mirrored template where that is tried.
  /// @param kept  (count, n) bool, the templates to try for each image; undefined: all. Others get minus infinity
  /// @return      (count, n)
  virtual Tensor highest(const Tensor& prepared, const Tensor& kept) const = 0;
  /// The scores of all angles of some templates for each image.
  /// @param index  (count, k) int64  @return (count, k, mirrors, nphi)
  virtual Tensor curves(const Tensor& prepared, const Tensor& index) const = 0;
};

/// How scores are computed for images of that dtype and device.
struct ScorerSetup {
  torch::TensorOptions images;
  Mirrors mirrors = Mirrors::both;
  std::int64_t memory_budget = 0;
};

/// For templates of maps, and of points on other devices than the CPU. @throws ValueError for a budget that does not do
std::unique_ptr<RotationScorer> fourier_scorer(const PolarTemplates& templates, const MatchScaling& scaling,
                                               const ScorerSetup& setup);
/// For templates of points on the CPU.
std::unique_ptr<RotationScorer> point_scorer(const PolarTemplates& templates, const MatchScaling& scaling,
                                             const ScorerSetup& setup);

/// @param needed  bytes for one image and one template  @throws ValueError when the budget has fewer
void check_budget(std::int64_t budget, std::int64_t needed, const PolarTemplates& templates);

}  // namespace mpol
