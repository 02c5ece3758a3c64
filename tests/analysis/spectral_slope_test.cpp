#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/full.h>

#include <mpol_cpp/analysis/spectral_slope.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const std::vector<double> four_windows = {217e9, 219e9, 231e9, 233e9};
constexpr std::int64_t samples_of_window = 500;

/// Amplitudes of data that are (frequency / 225 GHz)^index times the model, and noise of weight 4 times `noise`.
FrequencyAmplitudes amplitudes_of(double index, double noise, std::uint64_t seed, int passes = 1) {
  std::vector<FrequencyAmplitudes::Group> groups;
  groups.reserve(four_windows.size());
  for (const double frequency : four_windows) groups.push_back({frequency, samples_of_window});
  FrequencyAmplitudes amplitudes(groups);
  const auto weights = at::full({samples_of_window}, 4.0, torch::kFloat64);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto model = normal({samples_of_window}, torch::kComplexDouble, 100 + g);
      const auto errors = std::sqrt(2.0) * 0.5 * normal({samples_of_window}, torch::kComplexDouble, seed + g);
      amplitudes.add(g, model, std::pow(groups[g].frequency / 225e9, index) * model + noise * errors, weights);
    }
  }
  return amplitudes;
}

}  // namespace

TEST_CASE("the slope of a spectrum is that of its power law", "[analysis][quick]") {
  for (const double index : {-4.0, -0.7, 0.0, 2.2, 3.7}) {
    const auto slope = amplitudes_of(index, 0, 1).slope();
    REQUIRE(slope);
    CHECK(slope->index == Approx(index).margin(1e-9));
    CHECK(slope->lowest == 217e9);
    CHECK(slope->highest == 233e9);
    CHECK(slope->error > 0);
  }
}

TEST_CASE("the error of a slope is as far as noise moves it, however often samples come by", "[analysis][quick]") {
  constexpr int tries = 400;
  double sum = 0, squares = 0, error = 0;
  for (int i = 0; i < tries; ++i) {
    const auto slope = amplitudes_of(2.2, 1, 1000 + 10 * static_cast<std::uint64_t>(i)).slope();
    REQUIRE(slope);
    sum += slope->index, squares += slope->index * slope->index, error += slope->error;
  }
  const double mean = sum / tries, scatter = std::sqrt(squares / tries - mean * mean);
  error /= tries;
  CHECK(std::abs(mean - 2.2) < 4 * error / std::sqrt(tries));
  CHECK(scatter / error == Approx(1).margin(0.12));  // 400 tries know it to 0.035
  const auto once = amplitudes_of(2.2, 1, 5).slope(), thrice = amplitudes_of(2.2, 1, 5, 3).slope();
  CHECK(thrice->index == Approx(once->index).epsilon(1e-9));
  CHECK(thrice->error == Approx(once->error).epsilon(1e-9));
}

TEST_CASE("there is no slope without two frequencies, a model, or brightness", "[analysis][quick]") {
  const auto weights = at::full({3}, 1.0, torch::kFloat64);
  const auto model = at::full({3}, c10::complex<double>(1, 1), torch::kComplexDouble);
  const auto slope_of = [&](double second, const Tensor& of_model, double brightness) {
    FrequencyAmplitudes amplitudes({{100e9, 3}, {second, 3}});
    amplitudes.add(0, of_model, brightness * model, weights);
    amplitudes.add(1, of_model, 2 * brightness * model, weights);
    return amplitudes.slope();
  };
  CHECK(slope_of(200e9, model, 1)->index == Approx(1));
  CHECK_FALSE(slope_of(100e9, model, 1));
  CHECK_FALSE(slope_of(0, model, 1));  // not known
  CHECK_FALSE(slope_of(200e9, 0 * model, 1));
  CHECK_FALSE(slope_of(200e9, model, -1));
  CHECK_FALSE(FrequencyAmplitudes({}).slope());
  CHECK_FALSE(FrequencyAmplitudes({{1e9, 3}, {2e9, 3}}).slope());  // no sample came by
}
