#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/beam.h>

namespace mpol {

/// A Gaussian sampled at the cell spacing, major axis at its position angle East of North, cut to a square and scaled to
/// a sum of 1.
/// @param truncation  half the square's width in standard deviations of the major axis, rounded up to pixels
/// @return            (2 h + 1, 2 h + 1) float64, sky orientation, h = ceil(truncation sigma_major / cell_size)
Tensor gaussian_kernel(const Beam& beam, double cell_size, double truncation);

/// @throws ValueError when there is no beam, or one is not finite, has minor <= 0 or minor > major, or is wider than the image
void check_beams(const std::vector<Beam>& beams, const GridCoords& coords);

/// @throws ShapeError unless the image is (…, nchan, npix, npix) on these coordinates and there is one beam, or one for each
///         channel
void check_beams_fit(std::int64_t beams, const Tensor& sky, const GridCoords& coords);

}  // namespace mpol
