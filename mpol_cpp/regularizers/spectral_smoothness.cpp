#include <mpol_cpp/regularizers/spectral_smoothness.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::spectral_smoothness(const at::Tensor& sky_cube) {
  detail::check_sky_cube(sky_cube, 1);
  const auto nchan = sky_cube.size(-3);
  if (nchan < 3) return detail::sum_cube(sky_cube.narrow(-3, 0, 0));
  const auto before = sky_cube.narrow(-3, 0, nchan - 2), own = sky_cube.narrow(-3, 1, nchan - 2),
             after = sky_cube.narrow(-3, 2, nchan - 2);
  return detail::sum_cube(((before - own) - (own - after)).square());
}

const Regularizer& regularizers::SpectralSmoothness::descriptor() {
  static const Regularizer own{
      .name = "spectral_smoothness",
      .help = "Squared second differences from channel to channel: smooth spectra",
      .noise_scale = NoiseScale::curvature,
      .convexity = Convexity::quadratic,
      .joins_channels = true,
      .reach = 2,
      .function = of_sky([](const at::Tensor& sky, const auto&) { return losses::spectral_smoothness(sky); }),
  };
  return own;
}

}  // namespace mpol
