#pragma once

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

using torch::Tensor;

/// An image on other coordinates: each new pixel gets the mean brightness of its square, the old
/// pixels being squares of constant brightness and dark beyond the image. Flux is kept exactly where the new grid covers the
/// old one, and nothing becomes negative that was not. Differentiable.
/// @param sky_cube  (…, npix, npix) on `from`, Jy/arcsec^2, sky orientation, floating
/// @param offset    of the middle of `from` from that of `to`; not 0 where images have different centers (Observation::center)
/// @return          (…, npix, npix) on `to`, same dtype and device
/// @throws ShapeError when the image is not on `from`
Tensor regrid(const Tensor& sky_cube, const GridCoords& from, const GridCoords& to, const SkyOffset& offset = {});

}  // namespace mpol
