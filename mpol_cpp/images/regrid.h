#pragma once

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

using torch::Tensor;

/// An image on other coordinates with the same phase centre: each new pixel gets the mean brightness of its square, the old
/// pixels being squares of constant brightness and dark beyond the image. Flux is kept exactly where the new grid covers the
/// old one, and nothing becomes negative that was not. Differentiable.
/// @param sky_cube  (…, npix, npix) on `from`, Jy/arcsec^2, sky orientation, floating
/// @return          (…, npix, npix) on `to`, same dtype and device
/// @throws ShapeError when the image is not on `from`
Tensor regrid(const Tensor& sky_cube, const GridCoords& from, const GridCoords& to);

}  // namespace mpol
