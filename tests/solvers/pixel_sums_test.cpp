#include "catch.h"

#include <limits>

#include <ATen/ops/full.h>

#include <mpol_cpp/ops/proximal/gpu/gpu_pixel_sums.h>
#include <mpol_cpp/ops/proximal/image_vectors.h>
#include <mpol_cpp/regularizers/regularizers.h>

#include "compare.h"
#include "forced_isa.h"
#include "instruction_sets.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// (2, 3, npix, npix) of both signs, with NaN before and after them in memory.
Tensor fenced_images(std::int64_t npix, torch::Dtype dtype) {
  constexpr std::int64_t fence = 40;
  const auto values = uniform({2, 3, npix, npix}, torch::kFloat64, 5) - 0.3;
  auto memory = at::full({values.numel() + 2 * fence}, std::numeric_limits<double>::quiet_NaN(), dtype);
  const auto images = memory.narrow(0, fence, values.numel()).view(values.sizes());
  images.copy_(values);
  return images;
}

}  // namespace

TEMPLATE_TEST_CASE("sums over pixels are those of the losses, at any size and with each instruction set", "[solvers][isa][quick]",
                   float, double) {
  const double bound = tolerance<TestType>(1e-12, 3e-6);
  constexpr double of_variation = 1e-3, of_curvature = 2e-3;
  for (const auto isa : instruction_sets()) {
    const ForcedIsa forced(to_string(isa));
    for (const std::int64_t npix : {2, 3, 4, 5, 9, 16, 17, 18, 33, 34, 35, 66, 70}) {
      CAPTURE(to_string(isa), npix);
      const Tensor images = fenced_images(npix, c10::CppTypeToScalarType<TestType>::value);
      const auto sums = ops::pixel_sums(images, {of_variation, of_curvature});
      REQUIRE(sums.size() == 6);
      for (std::int64_t i = 0; i < 6; ++i) {
        const Tensor image = images.view({6, 1, npix, npix})[i].to(torch::kFloat64);
        const auto& own = sums[static_cast<std::size_t>(i)];
        CHECK(own.pixels == Approx(image.sum().item<double>()).epsilon(bound).margin(bound));
        CHECK(own.variation == Approx(losses::tv_image(image, of_variation).item<double>()).epsilon(bound).margin(0));
        CHECK(own.curvature == Approx(losses::tv_slope(image, of_curvature).item<double>()).epsilon(bound).margin(0));
      }
    }
  }
}

TEMPLATE_TEST_CASE("sums over pixels by emulated kernels of a GPU are those of the CPU", "[solvers][cuda][quick]", float,
                   double) {
  const double bound = tolerance<TestType>(1e-12, 3e-6);
  for (const std::int64_t npix : {2, 3, 4, 33, 70}) {
    const Tensor images = fenced_images(npix, c10::CppTypeToScalarType<TestType>::value);
    for (const auto& epsilons :
         {ops::LengthEpsilons{1e-3, 2e-3}, ops::LengthEpsilons{{}, 2e-3}, ops::LengthEpsilons{1e-3, {}}, ops::LengthEpsilons{}}) {
      const auto sums = ops::pixel_sums(images, epsilons);
      const Tensor own = ops::gpu_pixel_sums(images, epsilons).view({3, -1});
      for (std::int64_t i = 0; i < 6; ++i) {
        const auto& expected = sums[static_cast<std::size_t>(i)];
        CHECK(own[0][i].item<double>() == Approx(expected.pixels).epsilon(bound).margin(bound));
        CHECK(own[1][i].item<double>() == Approx(expected.variation).epsilon(bound).margin(0));
        CHECK(own[2][i].item<double>() == Approx(expected.curvature).epsilon(bound).margin(0));
      }
    }
  }
}

TEST_CASE("lengths that are not asked for are not summed", "[solvers][quick]") {
  const auto images = fenced_images(8, torch::kFloat64);
  const auto both = ops::pixel_sums(images, {0.1, 0.2})[4], none = ops::pixel_sums(images, {})[4],
             curvature = ops::pixel_sums(images, {.variation = {}, .curvature = 0.2})[4];
  CHECK(none.pixels == both.pixels);
  CHECK(none.variation == 0);
  CHECK(none.curvature == 0);
  CHECK(curvature.variation == 0);
  CHECK(curvature.curvature == both.curvature);
  CHECK(both.variation > 0);
}
