#include "catch.h"

#include <mpol_cpp/cli/output/loss_curves.h>

using namespace mpol;
using namespace mpol::cli;

TEST_CASE("figures of a long run show an even choice of its epochs, the first and the last among them", "[cli][quick]") {
  const auto epochs = GENERATE(as<std::size_t>(), 0, 1, 2, 4096, 4097, 1'000'000);
  INFO(epochs << " epochs");
  LossHistory history;
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    const double numbers[3] = {0.3, static_cast<double>(epoch) * 2, static_cast<double>(epoch) * 3};
    history.append_rows(numbers, 1, 3);
  }
  const auto curves = loss_curves(history);
  REQUIRE(curves.epochs.size() == std::min(epochs, LossCurves::most_epochs));
  if (epochs == 0) return;
  CHECK(curves.epochs.front() == 0);
  CHECK(curves.epochs.back() == static_cast<double>(epochs - 1));
  REQUIRE(curves.values.size() == 2);
  bool agree = true, even = true;
  for (std::size_t i = 0; i < curves.epochs.size(); ++i) {
    agree = agree && curves.values[0][i] == 2 * curves.epochs[i] && curves.values[1][i] == 3 * curves.epochs[i] &&
            curves.learning_rate[i] == 0.3;
    const double step = static_cast<double>(epochs - 1) / static_cast<double>(curves.epochs.size() - 1);
    if (i > 0) even = even && std::abs(curves.epochs[i] - curves.epochs[i - 1] - step) < 1;
  }
  CHECK(agree);
  CHECK(even);
}
