#pragma once

#include <string_view>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

/// The unit of u and v in a file.
enum class UvUnit {
  lambda,   ///< wavelengths
  klambda,  ///< thousands of wavelengths
  metres    ///< metres
};

/// "lambda", "klambda" or "m". @throws ValueError for other names
UvUnit uv_unit_from_name(std::string_view name);
std::string_view name_of(UvUnit unit);  ///< as uv_unit_from_name() takes it

/// Refuses baselines that cannot be meant in the unit they were read in: the longest one falls below two cells of the
/// uv grid, or beyond its edge.
/// @param used  the unit in which they were read
/// @throws DataError that names the length in that unit and in those that it may have been in
void check_uv_unit(const Visibilities& visibilities, const GridCoords& coords, UvUnit used);
/// The same of the largest |u| or |v|, wavelengths, of data with these frequencies, (nchan) Hz or undefined.
void check_uv_unit(double longest, const Tensor& frequencies, const GridCoords& coords, UvUnit used);

}  // namespace mpol::io
