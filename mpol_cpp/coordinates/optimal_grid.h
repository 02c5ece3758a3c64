#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

/// A grid that represents baselines up to `max_abs_uv` and is at least `image_width` wide:
///
///   cell_size = (1/2 - 1/n) / max_abs_uv,   n = max(4, ceil(image_width max_abs_uv))
///
/// and the smallest even npix, at least 4, that reaches the width. The cells are a little below the limit of `maximum_cell_size`.
/// MPoL's get_optimal_image_properties; its numbers for n >= 4.
/// @param image_width  arcsec, finite and > 0
/// @param max_abs_uv   largest |u| or |v| of the data, wavelengths, finite and > 0
/// @throws ValueError otherwise
GridCoords optimal_grid(double image_width, double max_abs_uv);

}  // namespace mpol
