#pragma once

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

using torch::Tensor;

/// A disc as it would look face on: its centre in the middle (column npix/2 - 1, row npix/2), the sky's major axis to the
/// North, and what lies along its minor axis stretched by 1/cos i to East and West. Brightness is kept, so that the flux
/// grows by 1/cos i. Between pixels by cubic convolution; zero beyond the image.
/// @param sky_cube  (nchan, npix, npix) real, sky orientation, any unit and device; differentiable
/// @return          same shape, dtype and grid
/// @throws ShapeError for another shape; ValueError for a disc seen edge on
/// Source of the interpolation: Keys 1981, a = -1/2 (third order).
Tensor deproject(const Tensor& sky_cube, const GridCoords& coords, const DiscGeometry& geometry);

}  // namespace mpol
