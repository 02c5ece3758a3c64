#include "catch.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/uncertainty/sharp_source.h>

using namespace mpol;

namespace {

/// A pixel of light after the Hann convolution, in an image of 32 x 32.
Tensor lone_pixel(std::int64_t row, std::int64_t column) {
  auto base = at::zeros({1, 32, 32}, torch::kFloat64);
  base[0][row][column] = 5;
  return ops::hann(base)[0];
}

}  // namespace

TEST_CASE("one pixel after the Hann convolution is as sharp as an image can be, and so are two beside each other", "[quick]") {
  const auto one = lone_pixel(12, 20);
  CHECK(is_at_its_sharpest(one, 12, 20));
  CHECK(is_at_its_sharpest(one, 13, 19));  // a residual may peak beside it
  CHECK_FALSE(is_at_its_sharpest(one, 20, 20));
  CHECK(is_at_its_sharpest(one + lone_pixel(12, 21), 12, 20));
  CHECK(is_at_its_sharpest(lone_pixel(0, 31), 0, 31));
  CHECK_FALSE(is_at_its_sharpest(one + 0.2, 12, 20));  // a floor of a sixth
  CHECK_FALSE(is_at_its_sharpest(at::zeros({32, 32}, torch::kFloat64), 5, 5));
}

TEST_CASE("a source that is resolved is not as sharp as an image can be", "[quick]") {
  const auto squares = (torch::arange(32, torch::kFloat64) - 16).square();
  const auto source = torch::exp((squares.unsqueeze(1) + squares) / (-2 * 2.5 * 2.5));
  CHECK_FALSE(is_at_its_sharpest(source, 16, 16));
}

TEST_CASE("what a fit misses for sharpness is the largest residual where the image is at its sharpest", "[quick]") {
  const auto sky = at::stack({lone_pixel(12, 20), lone_pixel(5, 6) + 0.5});
  auto residual = at::zeros({2, 32, 32}, torch::kFloat64);
  residual[0][13][20] = 8;
  residual[0][25][25] = 20;  // the image has nothing there
  residual[1][5][6] = 9;     // nor anything sharp
  const auto found = missed_for_sharpness(residual, sky, 5);
  REQUIRE(found);
  CHECK(found->channel == 0);
  CHECK(found->row == 13);
  CHECK(found->column == 20);
  CHECK(found->residual == 8);
  CHECK_FALSE(missed_for_sharpness(residual, sky, 8));
  CHECK_FALSE(missed_for_sharpness(residual, sky, 5, [](const MissedForSharpness& place) { return place.row == 13; }));
}
