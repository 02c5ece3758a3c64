#pragma once

#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Brightness of a disc against radius in its plane, averaged over azimuth. float64 on the CPU.
struct BrightnessProfile {
  Tensor radius;   ///< (nbins) middle of each ring, arcsec
  Tensor mean;     ///< (nchan, nbins), unit of the image; 0 in a ring without pixels
  Tensor scatter;  ///< (nchan, nbins) standard deviation of the pixels about the mean; 0 for fewer than two
  Tensor error;    ///< (nchan, nbins) of the mean: scatter over the root of the number of independent pixels
  Tensor pixels;   ///< (nbins) int64; of rings by area float64: what ring and image share
};

/// Which pixels are in a ring.
enum class RingPixels {
  by_center,  ///< those whose centers are, whole: MPoL's
  by_area,    ///< of every pixel the part of its area that is: PolarIntegrator. Rings may be narrower than a pixel
};

/// Options of radial_i().
struct RadialImageOptions {
  /// Edges of the rings, arcsec, increasing; empty: 0, sqrt(2) cell_size, … up to the largest
  /// distance of a pixel from the disc's centre to the East, West, North or South.
  TORCH_ARG(std::vector<double>, edges);
  /// Solid angle over which neighbouring pixels are alike, arcsec^2 (`beam_area` of the resolution): a ring has
  /// pixels cell_area / beam_area independent ones, at least one. 0: all pixels are independent.
  TORCH_ARG(double, beam_area) = 0;
  /// Whole pixels, or parts of them.
  TORCH_ARG(RingPixels, pixels) = RingPixels::by_center;
};

/// Radial brightness profile of every channel: pixels are shifted by the offset (positive to the East and North), turned
/// by the position angle, their distance along the minor axis divided by cos i, and averaged in rings that include their
/// inner edge (the last one also its outer edge). MPoL's radialI, with error bars; rings by area are ours.
/// @param sky_cube  (nchan, npix, npix) real, sky orientation, any dtype and device
/// @throws ShapeError for another shape; ValueError for edges that do not increase (of rings by area: or are negative), a
///         negative beam area, or a disc seen edge on
BrightnessProfile radial_i(const Tensor& sky_cube, const GridCoords& coords, const DiscGeometry& geometry,
                           const RadialImageOptions& options = {});

/// The error of a profile's mean from samples of the image (Bootstrap): the root mean square of what the samples' means differ by
/// from the image's, noise and what priors take away, for each ring with the correlations that pixels have, times a factor; and
/// the root of its square and that of what data still hold. The scatter along a ring has instead what the disc itself differs by
/// in azimuth.
/// @param of_image    profile of one channel
/// @param of_samples  profile of the samples as channels, at least two, with the same rings
/// @param factor      by how much errors are larger than samples differ (ErrorMaps::error_factor)
/// @param held        (1, nbins), what data still hold of the image's shape (ImageGrowth) in these rings; undefined: nothing
/// @return            (1, nbins) float64
/// @throws ShapeError when their shapes do not fit; ValueError for fewer than two samples
Tensor sampled_error(const BrightnessProfile& of_image, const BrightnessProfile& of_samples, double factor = 1,
                     const Tensor& held = {});

/// Visibilities of a disc against deprojected baseline length. float64 and complex128 on the CPU.
struct VisibilityProfile {
  Tensor q;        ///< (nbins) middle of each bin, wavelengths
  Tensor mean;     ///< (nchan, nbins) complex, Jy; 0 in an empty bin
  Tensor error;    ///< (nchan, nbins) complex, Jy: of the real and of the imaginary part of the mean
  Tensor samples;  ///< (nchan, nbins) int64
};

/// Whether amplitudes are divided by cos i: the flux that an optically thick disc would have face on.
enum class FluxScale {
  observed,  ///< of the disc as it lies
  face_on    ///< divided by cos i
};

/// Options of radial_v().
struct RadialVisibilityOptions {
  /// Edges of the bins, wavelengths, increasing; empty: 0, sqrt(2)/2 du, … up to the longest deprojected baseline.
  TORCH_ARG(std::vector<double>, edges);
  /// Whether the profile is that of the disc as it lies, or as it would be seen face on.
  TORCH_ARG(FluxScale, flux_scale) = FluxScale::observed;
};

/// Radial profile of model visibilities on the cells of a grid: the disc's centre is moved to the phase centre,
/// V exp(2 pi i (u East + v North)), and cells are averaged by the length of their deprojected baseline,
/// hypot((u cos PA - v sin PA) cos i, u sin PA + v cos PA). The error is the standard deviation in the bin over the root of
/// the number of cells. MPoL's radialV, which shifts the wrong way and scales only the real part to face on.
/// @param packed_cube  (nchan, npix, npix) complex, Jy, packed, any dtype and device
/// @throws ShapeError for another shape; ValueError as radial_i
VisibilityProfile radial_v(const Tensor& packed_cube, const GridCoords& coords, const DiscGeometry& geometry,
                           const RadialVisibilityOptions& options = {});

/// Radial profile of loose visibilities: means with the samples' weights and errors 1/sqrt(sum w) from them. The default
/// bins need a width: 50 of equal width up to the longest deprojected baseline.
VisibilityProfile radial_v(const Visibilities& visibilities, const DiscGeometry& geometry,
                           const RadialVisibilityOptions& options = {});

}  // namespace mpol
