#include "catch.h"

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/models/base_cube.h>
#include <mpol_cpp/models/hann_conv_cube.h>
#include <mpol_cpp/models/image_cube.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("the base cube and its gradient equal MPoL's", "[images][quick]", float, double) {
  const Golden dataset("dataset"), golden("images_basic");
  const auto base = packed_to_sky(dataset("in_base_packed"));
  const auto cube = BaseCube(BaseCubeOptions(dataset_coords()).base_cube(base).dtype(dtype_of<TestType>()));
  const auto intensity = cube->forward();
  CHECK(intensity.scalar_type() == dtype_of<TestType>());
  CHECK(relative_error(sky_to_packed(intensity), golden("out_basecube_packed")) < tolerance<TestType>(1e-13, 1e-6));

  (packed_to_sky(golden("in_random_weights")).to(dtype_of<TestType>()) * intensity).sum().backward();
  CHECK(relative_error(sky_to_packed(cube->base_cube().grad()), golden("out_basecube_gradient")) <
        tolerance<TestType>(1e-13, 1e-6));
}

TEST_CASE("the base cube starts at MPoL's default", "[images][quick]") {
  const auto coords = GridCoords(0.05, 8);
  const auto cube = BaseCube(BaseCubeOptions(coords).nchan(3));
  CHECK(cube->base_cube().sizes() == at::IntArrayRef({3, 8, 8}));
  CHECK(cube->base_cube().requires_grad());
  CHECK((cube->base_cube() == Golden("images_basic")("out_basecube_default_value").item<double>()).all().item<bool>());
}

TEST_CASE("the pixel mapping's inverse undoes it", "[images][quick]") {
  const auto mapping = softplus_mapping();
  const auto intensity = at::logspace(-12, 3, 200, 10.0, torch::kFloat64);
  CHECK(((mapping.forward(mapping.inverse(intensity)) - intensity).abs() / intensity).max().item<double>() < 1e-11);
}

TEST_CASE("a base cube of a wrong shape is refused", "[images][quick]") {
  const auto coords = GridCoords(0.05, 8);
  CHECK_THROWS_AS(BaseCube(BaseCubeOptions(coords).base_cube(torch::zeros({8, 8}))), ShapeError);
  CHECK_THROWS_AS(BaseCube(BaseCubeOptions(coords).base_cube(torch::zeros({1, 6, 8}))), ShapeError);
  CHECK_THROWS_AS(BaseCube(BaseCubeOptions(coords).nchan(0)), ValueError);
}

TEMPLATE_TEST_CASE("the Hann convolution and its gradient equal MPoL's", "[images][quick]", float, double) {
  const Golden dataset("dataset"), golden("images_basic");
  const auto image = dataset("in_image_sky").to(dtype_of<TestType>());
  const HannConvCube hann;
  CHECK(relative_error(sky_to_packed(hann->forward(image)), golden("out_hann_packed")) < tolerance<TestType>(1e-13, 1e-6));
  CHECK(relative_error(sky_to_packed(hann->forward(torch::ones_like(image))), golden("out_hann_of_ones_packed")) <
        tolerance<TestType>(1e-13, 1e-6));
  const auto weights = packed_to_sky(golden("in_random_weights")).to(dtype_of<TestType>());
  const auto gradient = gradient_of([&](const Tensor& x) { return (weights * hann->forward(x)).sum(); }, image);
  CHECK(relative_error(sky_to_packed(gradient), golden("out_hann_gradient")) < tolerance<TestType>(1e-13, 1e-6));
}

TEMPLATE_TEST_CASE("the image cube gives both orders and the flux", "[images][quick]", float, double) {
  const Golden dataset("dataset"), golden("images_basic");
  auto icube = ImageCube(dataset_coords());
  CHECK_THROWS_AS(icube->sky_cube(), ValueError);
  icube->forward(packed_to_sky(golden("out_image_packed")).to(dtype_of<TestType>()));
  const double bound = tolerance<TestType>(1e-13, 1e-6);
  CHECK(relative_error(icube->sky_cube(), golden("out_image_sky")) < bound);
  CHECK(relative_error(icube->packed_cube(), golden("out_image_packed")) < bound);
  CHECK(relative_error(icube->flux(), golden("out_flux")) < bound);
  CHECK_THROWS_AS(icube->forward(torch::zeros({1, 4, 4})), ShapeError);
}
