#pragma once

#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/beam.h>

namespace mpol {

using torch::Tensor;

/// Restores an image to the resolution of a CLEAN beam, as CLEAN does with its components, so that the two can be
/// compared: the image convolved with the beam, times the beam's area, plus the residual image where one is given.
/// @param sky       (…, nchan, npix, npix), Jy/arcsec^2, sky orientation
/// @param beams     one, or one for each channel (`DirtyImager::fitted_beam`)
/// @param residual  dirty image of data minus model, same shape, Jy per dirty beam; none when undefined
/// @return          same shape, Jy/beam
/// @throws ShapeError when shapes differ; ValueError for beams without extent or wider than the image
Tensor restore(const Tensor& sky, const GridCoords& coords, const std::vector<Beam>& beams, const Tensor& residual = {});

}  // namespace mpol
