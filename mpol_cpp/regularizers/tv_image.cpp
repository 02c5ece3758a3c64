#include <mpol_cpp/regularizers/tv_image.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::tv_image(const at::Tensor& sky_cube, double epsilon) {
  detail::check_sky_cube(sky_cube, 2);
  detail::check_epsilon(epsilon, sky_cube.scalar_type());
  const auto difference = detail::forward_differences(sky_cube);
  return detail::sum_cube((difference.along_m.square() + difference.along_l.square() + epsilon).sqrt());
}

const Regularizer& regularizers::TvImage::descriptor() {
  static const Regularizer own{
      .name = "tv",
      .help = "Total variation: sharp edges, flat inside; 0 where another LAMBDA is a number",
      .settings = {{.name = "epsilon", .value = settings[0], .is_divided_by = true}},
      .noise_scale = NoiseScale::slope,
      .convexity = Convexity::proximal,
      .automatic = UsualWeight{.bright = 0.3, .faint = 1},
      .searched_by_itself = true,
      .recorded_when_off = true,
      .function = of_sky([](const at::Tensor& sky, const auto& with) { return losses::tv_image(sky, with[0]); }),
  };
  return own;
}

}  // namespace mpol
