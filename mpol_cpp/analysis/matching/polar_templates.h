#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Templates of few bright bins: those of one template in a row.
struct PolarPoints {
  Tensor radius;   ///< (n, npoints) bins in radius, integers
  Tensor azimuth;  ///< (n, npoints) bins in azimuth, integers of any turn
  Tensor value;    ///< (n, npoints) brightness; 0: no point there, whatever its place, which fills up rows
};

/// A library of templates in bins of radius and azimuth, whole turns of even bins in azimuth (as PolarIntegrator makes them):
/// maps, or sets of points, which stay such, so that matching them on the CPU takes a time that follows the number of points.
class PolarTemplates {
 public:
  /// @param maps  (n, nr, nphi), float32 or float64, any device  @throws ShapeError; DataError for values that are not finite
  explicit PolarTemplates(const Tensor& maps);
  /// @param points  on any device; those in one bin add up
  /// @throws ShapeError; ValueError for a radius outside of [0, nr); DataError for values that are not finite
  PolarTemplates(const PolarPoints& points, std::int64_t nr, std::int64_t nphi);

  std::int64_t size() const { return size_; }  ///< templates
  std::int64_t nr() const { return nr_; }      ///< bins of radius
  std::int64_t nphi() const { return nphi_; }  ///< bins of azimuth

  /// Points of all templates, one template after the other, those of each in the order of bins. On the CPU.
  struct Points {
    Tensor starts;  ///< (n + 1) int64, the first point of each template, then their number
    Tensor bins;    ///< (points) int32, radius * nphi + azimuth
    Tensor values;  ///< (points) float64
  };
  /// Null for a library of maps.
  const Points* points() const { return points_.get(); }

  /// Some of the templates as maps.
  /// @param index    (count) int64  @param options  dtype and device of what is returned
  /// @return         (count, nr, nphi)
  Tensor maps(const Tensor& index, const torch::TensorOptions& options) const;

 private:
  std::int64_t size_, nr_, nphi_;
  Tensor maps_;
  std::shared_ptr<const Points> points_;
};

}  // namespace mpol
