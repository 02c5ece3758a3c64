#include "catch.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/visibilities/value_range.h>

using namespace mpol;

TEST_CASE("weights and data that a dtype cannot hold are refused with their value, and the remedy", "[visibilities][quick]") {
  const auto data = at::ones({2, 3}, torch::kComplexDouble);
  const auto refusal = [&](const torch::Tensor& of_data, const torch::Tensor& weights, torch::Dtype dtype) -> std::string {
    try {
      check_representable(of_data, weights, dtype);
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  };
  const auto weights = [](double value) { return at::full({2, 3}, value, torch::kFloat64); };
  for (const double ordinary : {1e-25, 1e-3, 1.0, 1e12, 1e25}) {
    CHECK(refusal(data, weights(ordinary), torch::kFloat32) == "none");
    CHECK(refusal(data, weights(ordinary).to(torch::kFloat32), torch::kFloat32) == "none");
  }
  CHECK_THAT(refusal(data, weights(1e-50), torch::kFloat32), ContainsSubstring("1e-50") && ContainsSubstring("float64"));
  CHECK(refusal(data, weights(1e-50), torch::kFloat64) == "none");
  CHECK_THAT(refusal(data, weights(1e-310), torch::kFloat64), ContainsSubstring("1e-310") && ContainsSubstring("unit of flux"));
  CHECK_THAT(refusal(data, weights(1e-200), torch::kFloat64), ContainsSubstring("1e-200"));  // its square is 0
  CHECK_THAT(refusal(data, weights(1.7e308), torch::kFloat64), ContainsSubstring("1.7e+308"));
  auto one_vanishes = weights(1);
  one_vanishes[1][1] = 1e-40;
  CHECK_THAT(refusal(data, one_vanishes, torch::kFloat32), ContainsSubstring("smallest weight is 1e-40"));
  CHECK_THAT(refusal(data * 1e200, weights(1), torch::kFloat64), ContainsSubstring("1e+200 Jy") && ContainsSubstring("chi^2"));
  CHECK_THAT(refusal(data * 1e20, weights(1), torch::kFloat32), ContainsSubstring("compute in float64"));
  CHECK(refusal(data * 1e20, weights(1), torch::kFloat64) == "none");
}
