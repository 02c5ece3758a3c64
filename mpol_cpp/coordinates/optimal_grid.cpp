#include <mpol_cpp/coordinates/optimal_grid.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {

GridCoords optimal_grid(double image_width, double max_abs_uv) {
  if (!std::isfinite(image_width) || image_width <= 0 || !std::isfinite(max_abs_uv) || max_abs_uv <= 0) {
    throw ValueError(
        fmt::format("the image is {} arcsec wide and baselines reach {} wavelengths; both must be finite and "
                    "greater than 0",
                    image_width, max_abs_uv));
  }
  const double fringe = 1 / (max_abs_uv * units::arcsec);  // arcsec
  const double fringes = std::max(4.0, std::ceil(image_width / fringe));
  const double cell_size = fringe * (0.5 - 1 / fringes);
  return {cell_size, 2 * std::max<std::int64_t>(2, static_cast<std::int64_t>(std::ceil(image_width / cell_size / 2)))};
}

}  // namespace mpol
