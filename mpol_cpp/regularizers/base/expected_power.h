#pragma once

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol::losses {

/// 1 / P for P = 2 pi l^2 exp(-2 pi^2 l^2 q^2), the power spectrum expected of structure correlated over l.
/// @param length_scale  l, arcsec, > 0
/// @param dtype         in which the result will be used: float32 holds 1/P up to l of 2.4 cells, float64 up to 8
/// @return              (npix, npix) float64, packed
/// @throws ValueError when 1/P overflows on the grid: the message names the largest usable length_scale
Tensor inverse_expected_power(const GridCoords& coords, double length_scale, torch::Dtype dtype = torch::kFloat64);

}  // namespace mpol::losses
