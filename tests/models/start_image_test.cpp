#include "catch.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/softplus.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/models/start_image.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords start_grid(0.1, 16);

BaseCubeOptions options_with(const PixelMapping& mapping) {
  return BaseCubeOptions(start_grid).nchan(2).dtype(torch::kFloat64).pixel_mapping(mapping);
}

}  // namespace

TEST_CASE("a cube that starts at an image makes it, floored at a part of each channel's peak", "[models][quick]") {
  const auto mapping = GENERATE(0, 1) == 0 ? softplus_mapping() : nonnegative_mapping();
  const auto sky = normal({2, 16, 16}, torch::kFloat64, 1);
  const auto expected = at::maximum(sky, 1e-2 * at::amax(sky, {-2, -1}, /*keepdim=*/true));
  const BaseCube cube(start_at_image(options_with(mapping), sky, 1e-2));
  CAPTURE(mapping.name);
  CHECK(cube->base_cube().scalar_type() == torch::kFloat64);
  CHECK(relative_error(cube->forward(), expected) < 1e-12);
  CHECK_THROWS_AS(start_at_image(options_with(mapping), -sky.abs(), 1e-2), DataError);
}

TEST_CASE("a cube that starts at an intensity is even", "[models][quick]") {
  const auto mapping = GENERATE(0, 1) == 0 ? softplus_mapping() : nonnegative_mapping();
  const BaseCube cube(start_at_intensity(options_with(mapping), 0.25));
  const auto image = cube->forward();
  CAPTURE(mapping.name);
  CHECK(image.sizes() == at::IntArrayRef({2, 16, 16}));
  CHECK(relative_error(image, torch::full_like(image, 0.25)) < 1e-12);
}

TEST_CASE("pixels that a mask leaves out stay dark, and its gradient there is zero", "[models][quick]") {
  const auto mask = (uniform({16, 16}, torch::kFloat64, 2) > 0.5).to(torch::kFloat64);
  const auto mapping = softplus_mapping(mask);
  CHECK(mapping.name == "softplus with a mask");
  const auto base = normal({2, 16, 16}, torch::kFloat64, 3).requires_grad_(true);
  const auto image = mapping.forward(base);
  CHECK(torch::equal(image, at::softplus(base) * mask));
  image.sum().backward();
  CHECK((base.grad() * (1 - mask)).abs().max().item<double>() == 0);
  CHECK((base.grad() * mask).abs().max().item<double>() > 0);
}
