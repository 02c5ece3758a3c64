#pragma once

#include <cstdint>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/baselines.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Visibilities with thermal noise as their weights promise: independent normal deviates of standard deviation 1/sqrt(w)
/// are added to the real and to the imaginary part; everything else is kept. The same for the same seed on every machine.
Visibilities add_noise(const Visibilities& visibilities, std::uint64_t seed);

/// What an observation with given baselines and weights would see of an image: exact model visibilities, by direct sums
/// over the pixels (cost nvis npix^2), and noise. For an observation from antennas and times: simulate.h.
/// @param sky_cube  (nchan, npix, npix), or (1, npix, npix) for all channels; sky orientation, Jy/arcsec^2
/// @param weights   (nchan, nvis) float32 or float64, Jy^-2, > 0; the data get the precision of the weights
/// @throws ShapeError when image, grid, baselines and weights do not agree; DataError for weights that are not positive
Visibilities fake_data(const Tensor& sky_cube, const GridCoords& coords, const Baselines& baselines, const Tensor& weights,
                       std::uint64_t seed = 0);

}  // namespace mpol
