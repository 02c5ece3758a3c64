#pragma once

#include <cstdint>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/analysis/sparse_operator.h>
#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

/// Edges of `count` bins of one width between two values. @throws ValueError unless count > 0 and last > first, finite
std::vector<double> even_edges(double first, double last, std::int64_t count);

/// Options of a PolarIntegrator.
struct PolarIntegratorOptions {
  PolarIntegratorOptions();

  /// Edges of the bins in radius, arcsec in the disc's plane: at least two, from 0 on, increasing, of any spacing.
  TORCH_ARG(std::vector<double>, radii);
  /// Edges of the bins in azimuth, radian, increasing, of any spacing, over 2 pi at most. Default: 0, 2 pi, whole rings.
  TORCH_ARG(std::vector<double>, azimuths);
  /// The disc's plane and centre. Default: face on, at the phase centre.
  TORCH_ARG(DiscGeometry, geometry);
  /// Weight of every pixel, (npix, npix) from 0 to 1; undefined: 1. What lies in pixels of 0 is never read, NaN included.
  TORCH_ARG(Tensor, mask);
};

/// An image in bins of radius and azimuth. dtype and device of the image; leading dimensions are the image's.
struct PolarMap {
  Tensor sum;       ///< (…, nr, nphi) flux: unit of the image times arcsec^2 (of the sky)
  Tensor mean;      ///< (…, nr, nphi) brightness, unit of the image; 0 in a bin without area
  Tensor variance;  ///< (…, nr, nphi) of the pixels about the mean, weighted by their areas in the bin; without a gradient
  Tensor area;      ///< (nr, nphi) arcsec^2 of the sky that the bin covers, mask included; float64
};

/// Sums and means of images over bins of radius and azimuth in the plane of an inclined disc, by exact area: a pixel, which is
/// a parallelogram in that plane, is split between bins by the parts of its area that lie in each.
///
///   sum_b = sum_p f_bp m_p I_p A,  mean_b = sum_b / area_b,  area_b = sum_p f_bp m_p A,
///   variance_b = sum_p f_bp m_p A (I_p - mean_b)^2 / area_b
///
/// with f_bp the part of pixel p in bin b, m the mask, A a pixel's solid angle. The parts are computed once and kept as a sparse
/// matrix. They add up to 1 for each pixel that the bins cover, so that flux is conserved, and bins may be as narrow as one
/// likes: narrower than a pixel they show the pixel's own brightness.
///
/// Radius and azimuth are measured about the disc's centre in its plane: the distance along the minor axis is that on the sky
/// divided by |cos i|, and azimuth is 0 on the major axis at the position angle and grows to the East of it. For a disc face
/// on with position angle 0, azimuth is 0 in the North and pi/2 in the East.
class PolarIntegrator {
 public:
  /// @throws ValueError for edges, a mask or an inclination that cannot be; ShapeError for a mask of another shape
  PolarIntegrator(const GridCoords& coords, const PolarIntegratorOptions& options);

  /// The sums alone; differentiable, linear.
  /// @param sky_cube  (…, npix, npix), sky orientation, float32 or float64, any device
  /// @return          (…, nr, nphi), same dtype and device. Sums are taken in float64; on the CPU they depend neither on the
  ///                  number of threads nor on other images that come with one
  /// @throws ShapeError for another shape or dtype
  Tensor forward(const Tensor& sky_cube) const;
  /// The adjoint of forward: (…, nr, nphi) to (…, npix, npix).
  Tensor adjoint(const Tensor& map) const;
  /// Sums, means, variances and areas; sums and means are differentiable. As forward.
  PolarMap integrate(const Tensor& sky_cube) const;

  std::int64_t nr() const { return nr_; }      ///< bins in radius
  std::int64_t nphi() const { return nphi_; }  ///< bins in azimuth
  /// Middle of each bin, (nr) arcsec and (nphi) radian, float64.
  Tensor radius() const { return radius_; }
  Tensor azimuth() const { return azimuth_; }  ///< middle of each bin, (nphi) radian, float64
  /// (nr, nphi) arcsec^2 of the sky that the image and the mask leave of each bin, float64 on the CPU.
  Tensor area() const { return area_; }
  /// Pixels in bins, parts counted one by one.
  std::int64_t entries() const { return sums_.entries(); }

 private:
  std::int64_t npix_, nr_, nphi_;
  SparseOperator sums_;  // bins x pixels, arcsec^2
  Tensor radius_, azimuth_, area_;
};

/// The largest radius in the disc's plane, arcsec, that any part of the image has.
double farthest_radius(const GridCoords& coords, const DiscGeometry& geometry);

}  // namespace mpol
