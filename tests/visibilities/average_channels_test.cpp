#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/visibilities/average_channels.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t samples_of_each = 40;

template <typename Real>
Visibilities random_channels(std::int64_t nchan, const Baselines& baselines) {
  const auto real = dtype_of<Real>();
  const auto data = torch::complex(normal({nchan, samples_of_each}, real, 1), normal({nchan, samples_of_each}, real, 2));
  Visibilities visibilities(baselines, data, normal({nchan, samples_of_each}, real, 3).abs() + 0.1);
  visibilities.set_frequencies(torch::arange(nchan, torch::kFloat64) * 1e9 + 100e9);
  return visibilities;
}

}  // namespace

TEMPLATE_TEST_CASE("averaged channels are weighted means, and keep the sum of the weights", "[visibilities][quick]", float,
                   double) {
  const auto u = normal({5, samples_of_each}, torch::kFloat64, 4), v = normal({5, samples_of_each}, torch::kFloat64, 5);
  const auto given = random_channels<TestType>(5, Baselines::in_lambda(u, v));
  const auto averaged = average_channels(given, 2);
  REQUIRE(averaged.nchan() == 3);
  CHECK(averaged.data().scalar_type() == given.data().scalar_type());
  const auto weights = given.weights().to(torch::kFloat64);
  const auto expected = (weights * given.data()).slice(0, 2, 4).sum(0) / weights.slice(0, 2, 4).sum(0);
  CHECK(relative_error(averaged.data()[1], expected) < tolerance<TestType>(1e-14, 1e-6));
  CHECK(relative_error(averaged.baselines().channel(1).first,
                       (weights * u).slice(0, 2, 4).sum(0) / weights.slice(0, 2, 4).sum(0)) < 1e-13);
  CHECK(relative_error(averaged.weights().sum(0), given.weights().sum(0)) < tolerance<TestType>(1e-14, 1e-6));
  CHECK(relative_error(averaged.data()[2], given.data()[4]) < tolerance<TestType>(1e-14, 1e-6));  // what is left over
  CHECK(same(averaged.frequencies(), torch::tensor({100.5e9, 102.5e9, 104e9}, torch::kFloat64)));
}

TEST_CASE("averaged channels of baselines in metres keep these, at the mean frequency", "[visibilities][quick]") {
  const auto frequencies = torch::arange(4, torch::kFloat64) * 1e9 + 100e9;
  const auto u = normal({samples_of_each}, torch::kFloat64, 4), v = normal({samples_of_each}, torch::kFloat64, 5);
  const auto averaged = average_channels(random_channels<double>(4, Baselines::in_metres(u, v, frequencies)), 4);
  CHECK(averaged.nchan() == 1);
  CHECK(same(averaged.baselines().u(), u));
  CHECK(averaged.baselines().frequencies().item<double>() == 101.5e9);
  const auto shared = random_channels<double>(4, Baselines::in_lambda(u, v));
  CHECK(same(average_channels(shared, 3).baselines().channel(1).first, u));
  CHECK(same(average_channels(shared, 1).data(), shared.data()));
  CHECK(average_channels(shared, 100).nchan() == 1);
  CHECK_THROWS_AS(average_channels(shared, 0), ValueError);
}
