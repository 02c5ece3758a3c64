#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/full.h>

#include <mpol_cpp/analysis/length_slope.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double longest = 1e6;
constexpr std::int64_t samples = 2000;

/// Data that are (1 + slope (q/q_max)^2) times the model, and noise of weight 4 times `noise`.
LengthAmplitudes amplitudes_of(double slope, double noise, std::uint64_t seed, int passes = 1) {
  LengthAmplitudes amplitudes(longest, samples);
  const auto q = longest * uniform({samples}, torch::kFloat64, 3);
  const auto model = normal({samples}, torch::kComplexDouble, 4);
  const auto errors = std::sqrt(2.0) * 0.5 * normal({samples}, torch::kComplexDouble, seed);
  const auto data = (1 + slope * (q / longest).square()) * model + noise * errors;
  const auto weights = at::full({samples}, 4.0, torch::kFloat64);
  for (int pass = 0; pass < passes; ++pass) amplitudes.add(q, model, data, weights);
  return amplitudes;
}

}  // namespace

TEST_CASE("the slope with baseline length is that of the data beside the model", "[analysis][quick]") {
  for (const double slope : {-0.3, 0.0, 0.5}) {
    const auto found = amplitudes_of(slope, 0, 1).slope();
    REQUIRE(found);
    CHECK(found->slope == Approx(slope).margin(1e-12));
    CHECK(found->samples == 2 * samples);
    if (slope == 0) CHECK(found->of_empty > 100 * found->chi_squared);
  }
  const auto exact = amplitudes_of(0.5, 0, 1).slope();
  CHECK(exact->explained < exact->chi_squared);  // a factor for all has some of it
  CHECK(exact->tells_sharp_source() == (exact->slope > 5 * exact->error));
}

TEST_CASE("the error of a slope with length is as far as noise moves it, however often samples come by", "[analysis][quick]") {
  constexpr int tries = 300;
  double sum = 0, squares = 0, error = 0;
  for (int i = 0; i < tries; ++i) {
    const auto found = amplitudes_of(0.2, 1, 1000 + static_cast<std::uint64_t>(i)).slope();
    REQUIRE(found);
    sum += found->slope, squares += found->slope * found->slope, error += found->error / tries;
  }
  const double mean = sum / tries, scatter = std::sqrt(squares / tries - mean * mean);
  CHECK(std::abs(mean - 0.2) < 4 * error / std::sqrt(tries));
  CHECK(scatter == Approx(error).epsilon(0.15));
  const auto once = amplitudes_of(0.2, 1, 7).slope(), thrice = amplitudes_of(0.2, 1, 7, 3).slope();
  CHECK(thrice->slope == Approx(once->slope));
  CHECK(thrice->error == Approx(once->error));
  CHECK(thrice->explained == Approx(once->explained));
  CHECK(thrice->chi_squared == Approx(once->chi_squared));
}

TEST_CASE("only data that exceed their model on long baselines tell a source that is too sharp", "[analysis][quick]") {
  CHECK(amplitudes_of(0.5, 1, 11).slope()->tells_sharp_source());
  CHECK_FALSE(amplitudes_of(-0.5, 1, 11).slope()->tells_sharp_source());
  CHECK_FALSE(amplitudes_of(0, 3, 11).slope()->tells_sharp_source());     // noise larger than the weights say
  CHECK_FALSE(amplitudes_of(0.05, 3, 11).slope()->tells_sharp_source());  // of which a slope explains little
  auto missed = *amplitudes_of(0.5, 1, 11).slope();
  missed.of_empty = missed.chi_squared;  // a model that shows nothing of the data
  CHECK_FALSE(missed.tells_sharp_source());
  CHECK_FALSE(LengthAmplitudes(longest, 0).slope().has_value());
  LengthAmplitudes one_length(longest, 2);
  const auto ones = torch::ones({2}, torch::kFloat64);
  one_length.add(ones * 1e5, torch::ones({2}, torch::kComplexDouble), torch::ones({2}, torch::kComplexDouble), ones);
  CHECK_FALSE(one_length.slope().has_value());
}
