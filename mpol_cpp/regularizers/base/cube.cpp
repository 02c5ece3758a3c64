#include <mpol_cpp/regularizers/base/cube.h>

#include <cmath>
#include <limits>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::losses::detail {

void check_sky_cube(const Tensor& cube, std::int64_t smallest) {
  if (cube.dim() < 3 || cube.size(-1) < smallest || cube.size(-2) < smallest) {
    throw ShapeError(fmt::format("the cube has shape {}; it must be (…, nchan, npix, npix) with at least {} x {} pixels",
                                 cube.sizes().vec(), smallest, smallest));
  }
}

void check_visibility_cube(const Tensor& cube) {
  if (cube.dim() < 3 || !cube.is_complex()) {
    throw ShapeError(
        fmt::format("the visibilities have shape {}; they must be complex, (…, nchan, npix, npix)", cube.sizes().vec()));
  }
}

void check_epsilon(double epsilon, torch::Dtype dtype) {
  if (!(epsilon > 0) || !std::isfinite(epsilon)) {
    throw ValueError(fmt::format("epsilon is {}; it must be finite and greater than 0", epsilon));
  }
  const double least = dtype == torch::kFloat32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  if (epsilon < least) {
    throw ValueError(fmt::format("epsilon is {:.3g}; {} needs at least {:.3g}: use a larger one{}", epsilon, c10::toString(dtype),
                                 least, dtype == torch::kFloat32 ? ", or float64" : ""));
  }
}

ForwardDifferences forward_differences(const Tensor& cube) {
  const auto rows = cube.size(-2) - 1, columns = cube.size(-1) - 1;
  const auto corner = cube.narrow(-2, 0, rows).narrow(-1, 0, columns);
  return {cube.narrow(-2, 1, rows).narrow(-1, 0, columns) - corner, cube.narrow(-2, 0, rows).narrow(-1, 1, columns) - corner};
}

}  // namespace mpol::losses::detail
