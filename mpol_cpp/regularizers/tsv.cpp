#include <mpol_cpp/regularizers/tsv.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::tsv(const at::Tensor& sky_cube) {
  detail::check_sky_cube(sky_cube, 2);
  const auto difference = detail::forward_differences(sky_cube);
  return detail::sum_cube(difference.along_m.square() + difference.along_l.square());
}

const Regularizer& regularizers::Tsv::descriptor() {
  static const Regularizer own{
      .name = "tsv",
      .help = "Total squared variation: smooth",
      .noise_scale = NoiseScale::curvature,
      .convexity = Convexity::quadratic,
      .recorded_when_off = true,
      .function = of_sky([](const at::Tensor& sky, const auto&) { return losses::tsv(sky); }),
  };
  return own;
}

}  // namespace mpol
