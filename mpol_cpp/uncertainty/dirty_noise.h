#pragma once

#include <cstdint>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// What the noise of the data does to the slope of chi^2/2 by the image: draws of
///
///   nu[n] = s Re sum_k w_k e_k exp(i k.n),   s = cell_size^2,   Re e_k, Im e_k ~ N(0, 1/w_k),
///
/// of covariance T, the operator of chi^2 = x^T T x - 2 b^T x + c (NormalOperator): data that are observed anew differ in b by
/// such an image and in nothing else that matters to a fit.
class DirtyNoise {
 public:
  /// The noise of samples at their own u, v, as the exact and the loose likelihood see them. It shares their storage.
  /// @throws DataError when a baseline lies outside the grid
  DirtyNoise(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels);
  /// The noise of cell averages at the centres of the cells, as the gridded likelihood sees them.
  explicit DirtyNoise(const GriddedDataset& dataset);

  /// @param number  0, 1, …: independent draws; each is the same for the same seed, whatever was drawn before
  /// @return        (nchan, npix, npix) float64 on the CPU, sky orientation, arcsec^2/Jy
  Tensor draw(std::uint64_t seed, std::uint64_t number) const;

 private:
  DirtyImager imager_;
  Tensor weights_;  // (data channels, nvis) or (ncells)
  Tensor factors_;  // (nchan, 1, 1): from the natural image to nu
};

}  // namespace mpol
