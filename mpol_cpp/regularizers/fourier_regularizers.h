#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>

/// Regularisers of packed model visibilities (…, nchan, npix, npix), complex, Jy; one float64 value per problem, (…).
namespace mpol::losses {

/// 1 / P for P = 2 pi l^2 exp(-2 pi^2 l^2 q^2), the power spectrum expected of structure correlated over l.
/// @param length_scale  l, arcsec, > 0
/// @param dtype         in which the result will be used: float32 holds 1/P up to l of 2.4 cells, float64 up to 8
/// @return              (npix, npix) float64, packed
/// @throws ValueError when 1/P overflows on the grid: the message names the largest usable length_scale
Tensor inverse_expected_power(const GridCoords& coords, double length_scale, torch::Dtype dtype = torch::kFloat64);

/// Power spectral density prior, sum |V|^2 / P (Source: MPoL's PSD).
Tensor psd(const Tensor& packed_visibilities, const GridCoords& coords, double length_scale);
/// The same with 1/P from inverse_expected_power, in the visibilities' real dtype and on their device.
Tensor psd(const Tensor& packed_visibilities, const Tensor& inverse_power);

/// Sparsity of the cells beyond q_max, sum (|Re V| + |Im V|) over q > q_max.
/// @param q_max  wavelengths, >= 0
Tensor uv_sparsity(const Tensor& packed_visibilities, const GridCoords& coords, double q_max);

}  // namespace mpol::losses
