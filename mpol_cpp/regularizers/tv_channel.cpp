#include <mpol_cpp/regularizers/tv_channel.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::tv_channel(const at::Tensor& sky_cube, double epsilon) {
  detail::check_sky_cube(sky_cube, 1);
  detail::check_epsilon(epsilon, sky_cube.scalar_type());
  const auto difference = sky_cube.narrow(-3, 1, sky_cube.size(-3) - 1) - sky_cube.narrow(-3, 0, sky_cube.size(-3) - 1);
  return detail::sum_cube((difference.square() + epsilon).sqrt());
}

const Regularizer& regularizers::TvChannel::descriptor() {
  static const Regularizer own{
      .name = "tv_channel",
      .help = "Total variation from channel to channel",
      .settings = {{.name = "epsilon", .value = settings[0], .is_divided_by = true}},
      .noise_scale = NoiseScale::slope,
      .convexity = Convexity::proximal,
      .dual_images = 1,
      .joins_channels = true,
      .reach = 1,
      .recorded_when_off = true,
      .function = of_sky([](const at::Tensor& sky, const auto& with) { return losses::tv_channel(sky, with[0]); }),
  };
  return own;
}

}  // namespace mpol
