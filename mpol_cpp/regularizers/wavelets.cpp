#include <mpol_cpp/regularizers/wavelets.h>

#include <mpol_cpp/ops/wavelet/sara_bases.h>
#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::wavelets(const at::Tensor& sky_cube) {
  detail::check_sky_cube(sky_cube, 2);
  const auto coefficients = ops::SaraBases(sky_cube.size(-1)).analyze(sky_cube);
  return (detail::sum_cube(sky_cube.abs()) + detail::sum_cube(coefficients.abs()).sum(0)) * ops::SaraBases::share;
}

const Regularizer& regularizers::Wavelets::descriptor() {
  static const Regularizer own{
      .name = "wavelets",
      .help = "Sum of |I| in the bases of Dirac and Daubechies 1 to 8 together, as SARA of PURIFY: few features of any size",
      .noise_scale = NoiseScale::slope,
      .convexity = Convexity::proximal,
      .needs_positive_pixels = true,
      .dual_images = ops::SaraBases::count,
      .asked_for = 1,
      .function = of_sky([](const at::Tensor& sky, const auto&) { return losses::wavelets(sky); }),
  };
  return own;
}

}  // namespace mpol
