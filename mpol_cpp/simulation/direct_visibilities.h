#pragma once

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol {

using torch::Tensor;

/// What the value of a pixel stands for.
enum class PixelShape {
  point,   ///< a point source of cell_size^2 I at its centre (sampled functions; what an FFT of the grid assumes)
  square,  ///< brightness I all over its square: the transform is multiplied by sinc(u dl) sinc(v dl)
};

/// Visibilities of an image by direct sums in float64, without any gridding or interpolation in the uv plane:
///
///   V_k = cell_size^2 sum_{m,l} I(m,l) exp(-2 pi i (u_k l + v_k m))
///
/// The two axes separate, so that a block of samples is one matrix product; its cost is nvis npix^2. Memory besides the
/// result stays below 100 MB.
/// @param sky_cube   (nchan, npix, npix), or (1, npix, npix) for all channels; sky orientation, Jy/arcsec^2
/// @param baselines  one set for all channels, or one per channel
/// @param nchan      channels of the result
/// @return           (nchan, nvis) complex128 on the CPU, Jy
/// @throws ShapeError when image, grid, baselines and nchan do not agree
Tensor direct_visibilities(const Tensor& sky_cube, const GridCoords& coords, const Baselines& baselines, std::int64_t nchan,
                           PixelShape shape = PixelShape::point);

}  // namespace mpol
