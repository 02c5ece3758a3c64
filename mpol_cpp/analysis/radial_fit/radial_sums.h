#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_fit/radial_spline.h>
#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/analysis/radial_fit/fourier_bessel_series.h>
#include <mpol_cpp/analysis/radial_fit/series_spline.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// What a fit of the profile I of a flat disc needs of its visibilities, chi^2 = I^T M I - 2 j^T I + c:
///
///   M = sum w H^T H,   j = sum w H^T Re V',   c = sum w |V'|^2,   H = cos i times the series' transform at q
///
/// where V' is V with the disc's centre turned to the phase centre and q the length of the deprojected baseline. Samples are
/// added block by block, in any number of calls; time for each of them and memory depend neither on their number nor on that of
/// the radii. The same bits for any number of threads.
class RadialSums {
 public:
  /// @param longest  baseline that will be added, wavelengths: deprojected or, which is not shorter, as it is
  /// @throws ValueError for a disc seen edge on, and as spline_of()
  RadialSums(const FourierBesselSeries& series, const DiscGeometry& geometry, double longest);

  /// Adds all samples of all channels. @throws DataError for a longer baseline than was announced
  void add(const Visibilities& visibilities);

  Tensor matrix() const;  ///< M, (n, n) float64, Jy^-2 arcsec^4
  Tensor vector() const;  ///< j, (n) float64, Jy^-1 arcsec^2

  double data_squares() const { return squares_; }        ///< c: chi^2 without a disc
  double weight() const { return weight_; }               ///< the sum of all weights, Jy^-2
  double longest() const { return longest_; }             ///< the longest deprojected baseline added, wavelengths
  std::int64_t samples() const { return samples_; }       ///< that were added, of all channels
  const SeriesSpline& spline() const { return spline_; }  ///< of the series, without cos i

 private:
  DiscGeometry geometry_;
  SeriesSpline spline_;
  BandMatrix band_;            // sums over B-splines of the baseline's length
  std::vector<double> right_;  // the same for the data
  double squares_ = 0, weight_ = 0, longest_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace mpol
