#include <mpol_cpp/regularizers/sparsity.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::sparsity(const at::Tensor& sky_cube) {
  detail::check_sky_cube(sky_cube, 1);
  return detail::sum_cube(sky_cube.abs());
}

at::Tensor losses::sparsity(const at::Tensor& sky_cube, const at::Tensor& mask) {
  detail::check_sky_cube(sky_cube, 1);
  return detail::sum_cube(sky_cube.abs() * mask);
}

const Regularizer& regularizers::Sparsity::descriptor() {
  static const Regularizer own{
      .name = "sparsity",
      .help = "Sum of |I|: few bright pixels; 0 where another LAMBDA is a number",
      .noise_scale = NoiseScale::slope,
      .convexity = Convexity::proximal,
      .automatic = UsualWeight{.bright = 1, .faint = 0.46, .bright_power = 0.5, .faint_power = 0.3},
      .searched_by_itself = true,
      .search_limit = 30,
      .recorded_when_off = true,
      .function = [](const auto&) { return [](const RegularizerInput& input) { return losses::sparsity(input.pixels); }; },
  };
  return own;
}

}  // namespace mpol
