#include "catch.h"

#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/losses/visibility_losses.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using losses::chi_squared;

TEMPLATE_TEST_CASE("losses on loose visibilities and their gradients equal MPoL's", "[losses][quick]", float, double) {
  const Golden golden("losses_vis");
  const auto model = golden("in_model").to(complex_dtype_of<TestType>());
  const auto data = golden("in_data").to(complex_dtype_of<TestType>());
  const auto weights = golden("in_weight").to(dtype_of<TestType>());
  const auto check = [&](const std::string& key, const auto& loss) {
    INFO(key);
    CHECK(relative_error(loss(model), golden("out_" + key)) < tolerance<TestType>(1e-12, 1e-6));
    CHECK(relative_error(gradient_of(loss, model), golden("out_" + key + "_gradient")) < tolerance<TestType>(1e-12, 1e-6));
  };
  check("chi_squared", [&](const Tensor& m) { return chi_squared(m, data, weights); });
  check("r_chi_squared", [&](const Tensor& m) { return losses::nll(m, data, weights); });
  check("log_likelihood", [&](const Tensor& m) { return losses::log_likelihood(m, data, weights); });
  check("neg_log_likelihood_avg", [&](const Tensor& m) { return losses::neg_log_likelihood_avg(m, data, weights); });
}

TEST_CASE("the log likelihood is the logarithm of the Gaussian density, which MPoL v0.1's is not", "[losses][quick]") {
  const Golden golden("losses_vis");
  const auto model = golden("in_model"), data = golden("in_data"), weights = golden("in_weight");
  const double value = losses::log_likelihood(model, data, weights).item<double>();
  const auto deviation = at::view_as_real((data - model).resolve_conj()), sigma = weights.rsqrt().unsqueeze(-1);
  const auto density = -0.5 * (deviation / sigma).square() - sigma.log() - 0.5 * std::log(2 * units::pi);
  CHECK(value == Approx(density.sum().item<double>()).epsilon(1e-12));
  CHECK(std::abs(value / golden.number("bug_v01_log_likelihood") - 1) > 1e-3);
}

TEST_CASE("without residuals chi squared is exactly zero", "[losses][quick]") {
  for (const auto& shape : {std::vector<std::int64_t>{10000}, {50, 1000}}) {
    const auto model = normal(shape, torch::kComplexDouble, 8);
    const auto weights = torch::ones(shape, torch::kFloat64);
    CHECK(chi_squared(model, model.clone(), weights).item<double>() == 0);
    CHECK(losses::nll(model, model.clone(), weights).item<double>() == 0);
  }
}

TEST_CASE("averaged losses of pure noise do not depend on the number of visibilities", "[losses][quick]") {
  const double sigma = 0.2;
  const double expected = 0.5 + std::log(sigma * std::sqrt(2 * units::pi));  // of one real value
  for (const std::int64_t count : {10'000, 30'000, 100'000}) {
    const auto model = torch::ones({count}, torch::kComplexDouble);
    const auto weights = torch::full({count}, 1 / (sigma * sigma), torch::kFloat64);
    const auto data = model + normal({count}, torch::kComplexDouble, 9) * (std::sqrt(2.0) * sigma);
    const double spread = 6 / std::sqrt(4.0 * static_cast<double>(count));  // six standard errors of either
    CHECK_THAT(losses::neg_log_likelihood_avg(model, data, weights).item<double>(), WithinAbs(expected, spread));
    CHECK_THAT(losses::nll(model, data, weights).item<double>(), WithinAbs(1, 2 * spread));
  }
}

TEST_CASE("leading dimensions of the model are independent problems", "[losses][quick]") {
  const auto data = normal({2, 30}, torch::kComplexDouble, 1);
  const auto weights = uniform({2, 30}, torch::kFloat64, 2) + 0.1;
  const auto models = normal({4, 3, 2, 30}, torch::kComplexDouble, 3);
  const auto together = chi_squared(models, data, weights);
  CHECK(together.sizes() == at::IntArrayRef({4, 3}));
  CHECK(together[2][1].item<double>() == Approx(chi_squared(models[2][1], data, weights).item<double>()).epsilon(1e-13));
}

TEST_CASE("chi squared does not change when samples are permuted or conjugated in pairs", "[losses][quick]") {
  const auto data = normal({50}, torch::kComplexDouble, 4), model = normal({50}, torch::kComplexDouble, 5);
  const auto weights = uniform({50}, torch::kFloat64, 6);
  const double value = chi_squared(model, data, weights).item<double>();
  const auto order = torch::randperm(50, generator(7), torch::kLong);
  CHECK(chi_squared(model.index({order}), data.index({order}), weights.index({order})).item<double>() ==
        Approx(value).epsilon(1e-13));
  CHECK(chi_squared(model.conj(), data.conj(), weights).item<double>() == Approx(value).epsilon(1e-13));
}

TEST_CASE("mismatched visibilities are refused", "[losses][quick]") {
  const auto data = normal({2, 30}, torch::kComplexDouble, 1);
  const auto weights = uniform({2, 30}, torch::kFloat64, 2);
  CHECK_THROWS_AS(chi_squared(data.narrow(1, 0, 29), data, weights), ShapeError);
  CHECK_THROWS_AS(chi_squared(data, data, weights[0]), ShapeError);
  CHECK_THROWS_AS(chi_squared(weights, data, weights), ShapeError);
  CHECK_THROWS_AS(chi_squared(data[0], data, weights), ShapeError);
}
