#include "catch.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <mpol_cpp/train/options/convergence_forecast.h>
#include <mpol_cpp/train/progress_report.h>
#include <mpol_cpp/train/trainer.h>

#include "../solvers/convex_problems.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("the end of a power law is told from its last octave, whatever came before", "[train][quick]") {
  for (const double power : {0.5, 1.0, 3.0}) {
    ConvergenceForecast forecast;
    constexpr double end = 1000;
    for (std::int64_t epochs = 8; epochs <= 64; epochs *= 2) forecast.note(epochs, 1e9);
    CHECK_FALSE(forecast.expected_end());
    for (const std::int64_t epochs : {200, 238, 283, 336})
      forecast.note(epochs, std::pow(end / static_cast<double>(epochs), power));
    REQUIRE(forecast.expected_end());
    CHECK_THAT(static_cast<double>(*forecast.expected_end()), WithinAbs(end, 1.01));
  }
}

TEST_CASE("no end is told of a fit that gets no nearer, or of which too little is known", "[train][quick]") {
  ConvergenceForecast flat, short_way, growing;
  for (const std::int64_t epochs : {100, 119, 141, 168, 200}) {
    flat.note(epochs, 5.0);
    growing.note(epochs, static_cast<double>(epochs));
    short_way.note(epochs, epochs < 168 ? std::numeric_limits<double>::quiet_NaN() : 2.0 / static_cast<double>(epochs));
  }
  CHECK_FALSE(flat.expected_end());
  CHECK_FALSE(growing.expected_end());
  CHECK_FALSE(short_way.expected_end());
}

TEST_CASE("an end that is due comes after the epochs that there were", "[train][quick]") {
  ConvergenceForecast forecast;
  for (const std::int64_t epochs : {100, 119, 141}) forecast.note(epochs, 10.0 / static_cast<double>(epochs));
  CHECK(forecast.expected_end() == 142);
}

TEST_CASE("what a fit expects of its end, half way, is within a factor of two of it", "[train]") {
  std::vector<std::int64_t> expected;  // after each epoch, 0: nothing was said
  const auto note = [&](const Progress& progress) {
    expected.push_back(progress.expected_end.value_or(0));
    return CallbackAction::proceed;
  };
  const auto options = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-9).epochs(100000).callbacks({note});
  const auto result = Trainer(positive_model(base_image(torch::kFloat64, 5)), sparse(torch::kFloat64, 1e-5, 1e-5), options).fit();
  REQUIRE(result.stop_reason == StopReason::converged);
  const auto end = static_cast<double>(result.epochs);
  const auto then = static_cast<double>(expected.at(static_cast<std::size_t>(result.epochs / 2)));
  INFO(end << " epochs, of which " << then << " were expected half way");
  CHECK(then > end / 2);
  CHECK(then < 2 * end);
}
