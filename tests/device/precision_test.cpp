#include "catch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/precision.h>

using namespace mpol;

TEST_CASE("precision is float32 or float64, its sums float64", "[device][quick]") {
  CHECK_NOTHROW(Precision{}.validate());
  CHECK(Precision{}.complex() == torch::kComplexFloat);
  CHECK(Precision{torch::kFloat64}.complex() == torch::kComplexDouble);
  CHECK_NOTHROW(Precision{torch::kFloat64}.validate());
  CHECK_THROWS_AS(Precision{torch::kFloat16}.validate(), ValueError);
  CHECK_THROWS_WITH((Precision{torch::kFloat32, torch::kFloat32}.validate()), ContainsSubstring("always taken in float64"));
}

TEST_CASE("where LibTorch has no operation that repeats itself, one is refused when asked for", "[device][quick]") {
  const auto overwrite = [] { at::zeros({4}).put_(at::arange(4), at::ones({4}), /*accumulate=*/false); };
  REQUIRE_FALSE(is_deterministic());
  CHECK_NOTHROW(overwrite());
  set_deterministic(true);
  CHECK(is_deterministic());
  CHECK_THROWS(overwrite());
  set_deterministic(false);
  CHECK_FALSE(is_deterministic());
  CHECK_NOTHROW(overwrite());
}
