#include <mpol_cpp/regularizers/tv_slope.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::tv_slope(const at::Tensor& sky_cube, double epsilon) {
  detail::check_sky_cube(sky_cube, 1);
  detail::check_epsilon(epsilon, sky_cube.scalar_type());
  const auto rows = sky_cube.size(-2) - 2, columns = sky_cube.size(-1) - 2;
  if (rows < 1 || columns < 1) return detail::sum_cube(sky_cube * 0);
  const auto at = [&](std::int64_t row, std::int64_t column) {  // of the pixel so far from each
    return sky_cube.narrow(-2, 1 + row, rows).narrow(-1, 1 + column, columns);
  };
  const auto center = at(0, 0);
  const auto along_m = at(1, 0) - 2 * center + at(-1, 0), along_l = at(0, 1) - 2 * center + at(0, -1);
  const auto mixed = at(1, 1) - at(1, 0) - at(0, 1) + center;
  return detail::sum_cube((along_m.square() + along_l.square() + 2 * mixed.square() + epsilon).sqrt());
}

const Regularizer& regularizers::TvSlope::descriptor() {
  static const Regularizer own{
      .name = "tv_slope",
      .help = "Total variation of slopes: smooth structure without steps; 0 where another LAMBDA is a number",
      .settings = {{.name = "epsilon", .value = settings[0], .is_divided_by = true}},
      .noise_scale = NoiseScale::slope,
      .convexity = Convexity::proximal,
      .dual_images = 3,
      .automatic = UsualWeight{.bright = 0.5, .faint = 1.6},
      .function = of_sky([](const at::Tensor& sky, const auto& with) { return losses::tv_slope(sky, with[0]); }),
  };
  return own;
}

}  // namespace mpol
