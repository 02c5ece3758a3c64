#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

using torch::Tensor;

/// What data still hold of a fitted image x, as it stands or smoothed, x_s: data alone would have it by a x_s brighter,
/// a = <x_s, b - T x>/<x_s, T x_s> for chi^2 = x^T T x - 2 b^T x + c. It is what priors keep back, which fits of simulated data
/// do not show where noise makes up for it, nor where the image is too compact to have it. Tensors (nchan) float64 on the CPU.
struct ImageGrowth {
  Tensor share;  ///< a
  Tensor width;  ///< of the Gaussian that smooths the image, full width at half maximum, arcsec; 0: the image as it stands

  /// a x_s of a channel. @param sky  (npix, npix) of it  @return the same shape, float64 on the CPU; 0 without growth
  Tensor of_channel(std::int64_t channel, const Tensor& sky, const GridCoords& coords) const;
};

/// The widths at which growth is looked for: 0, and a third of the field and its halves down to four pixels, arcsec.
std::vector<double> growth_widths(const GridCoords& coords);

/// An image smoothed by a Gaussian, on its device. @param sky  (…, nchan, npix, npix)
/// @param width  full width at half maximum, arcsec; 0: the image as it stands  @throws ValueError wider than the field
Tensor smoothed_to(const Tensor& sky, const GridCoords& coords, double width);

}  // namespace mpol
