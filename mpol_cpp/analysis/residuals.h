#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Residuals from the mean of their uv cell in units of the sigma that the weights claim:
///
///   r_k = (V_k - V_c) sqrt(w_k / (1 - w_k / W_c)),
///
/// so that real and imaginary parts are standard normal when the weights are right and the source does not change within
/// a cell. Each channel is averaged in cells of its own.
/// @return  (nchan, nvis) complex64 on the CPU; 0 + 0i where a sample is alone in its cell: `residual_statistics` leaves
///          these out
/// @throws DataError when a baseline lies outside the grid
Tensor cell_residuals(const GridCoords& coords, const Visibilities& visibilities);

/// How residuals in units of sigma are spread; real and imaginary parts count alike.
struct ResidualStatistics {
  std::int64_t samples = 0;       ///< complex residuals counted
  double mean = 0;                ///< of real and imaginary parts
  double standard_deviation = 0;  ///< of the same about their mean: outliers count in full
  /// The factor by which sigma looks underestimated: median |r| / 0.6745, which a tenth of wild samples moves by less than
  /// a fifth. Multiply the weights by `weight_factor` to make them right.
  double sigma_factor = 0;
  double beyond_four = 0;  ///< part of all values beyond four (robust) sigma; 6e-5 for Gaussian noise

  /// What the weights are to be multiplied with.
  double weight_factor() const { return 1 / (sigma_factor * sigma_factor); }
};

/// @param residuals  complex, any shape, in units of sigma; exact zeros are left out. All statistics are 0 without samples.
ResidualStatistics residual_statistics(const Tensor& residuals);

/// Statistics of each group of residuals.
struct GroupScatter {
  std::int64_t group;             ///< its number
  ResidualStatistics statistics;  ///< of the residuals in it
};

/// @param residuals  (nchan, nvis) complex
/// @param groups     int64, whose shape broadcasts to that of the residuals: a number for each (spectral window, antenna
///                   pair, scan, …)
/// @return           one entry for each number that occurs, increasing
/// @throws ShapeError when the shapes do not agree
std::vector<GroupScatter> scatter_by_group(const Tensor& residuals, const Tensor& groups);

/// Histogram of residuals for comparison with the unit Gaussian.
struct ResidualHistogram {
  Tensor edges;     ///< (nbins + 1) float64, units of sigma, -limit … limit
  Tensor density;   ///< (nbins) float64, part of all values per sigma; values beyond the limit count in the total
  Tensor expected;  ///< (nbins) float64, the same for Gaussian noise of standard deviation 1
};

/// @param nbins  >= 1;  @param limit  > 0  @throws ValueError otherwise
ResidualHistogram residual_histogram(const Tensor& residuals, std::int64_t nbins = 100, double limit = 5);

/// The same visibilities with weights multiplied by a factor > 0: one number, or a tensor that broadcasts to (nchan, nvis).
/// @throws DataError when a weight is then not positive and finite
Visibilities scale_weights(const Visibilities& visibilities, const Tensor& factor);

}  // namespace mpol
