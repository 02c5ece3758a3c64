#include <mpol_cpp/regularizers/edge_clamp.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::edge_clamp(const at::Tensor& sky_cube) {
  detail::check_sky_cube(sky_cube, 1);
  const auto squares = [](const at::Tensor& edge) { return edge.square().to(torch::kFloat64).sum({-2, -1}); };
  return squares(sky_cube.select(-2, 0)) + squares(sky_cube.select(-2, -1)) + squares(sky_cube.select(-1, 0)) +
         squares(sky_cube.select(-1, -1));
}

const Regularizer& regularizers::EdgeClamp::descriptor() {
  static const Regularizer own{
      .name = "edge_clamp",
      .help = "Square of the pixels on the image's edges",
      .convexity = Convexity::quadratic,
      .recorded_when_off = true,
      .function = of_sky([](const at::Tensor& sky, const auto&) { return losses::edge_clamp(sky); }),
  };
  return own;
}

}  // namespace mpol
