#include <mpol_cpp/regularizers/group_sparsity.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::group_sparsity(const at::Tensor& sky_cube, double epsilon) {
  detail::check_sky_cube(sky_cube, 1);
  detail::check_epsilon(epsilon, sky_cube.scalar_type());
  return detail::sum_cube((sky_cube.square().sum({-3}, /*keepdim=*/true) + epsilon).sqrt());
}

const Regularizer& regularizers::GroupSparsity::descriptor() {
  static const Regularizer own{
      .name = "group_sparsity",
      .help = "Sum over pixels of the norm of their spectra (L2,1): few bright pixels, the same in all channels",
      .settings = {{.name = "epsilon", .value = settings[0], .is_divided_by = true}},
      .noise_scale = NoiseScale::slope_of_spectrum,
      .convexity = Convexity::proximal,
      .dual_images = 1,
      .joins_channels = true,
      .function = of_sky([](const at::Tensor& sky, const auto& with) { return losses::group_sparsity(sky, with[0]); }),
  };
  return own;
}

}  // namespace mpol
