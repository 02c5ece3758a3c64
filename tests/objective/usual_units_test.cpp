#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/regularizers/regularizers.h>

using namespace mpol;

TEST_CASE("usual weights are those of bright and of faint data, and between them along the logarithms", "[objective][quick]") {
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    CAPTURE(regularizer.name);
    if (!regularizer.automatic) {
      CHECK_THROWS_AS(usual_units(regularizer, 20), ValueError);
      continue;
    }
    const auto [bright, faint] = *regularizer.automatic;
    const auto at = [&](double signal) { return usual_units(regularizer, signal); };
    for (const double signal : {0.0, 4.0, faint_signal}) CHECK(at(signal) == Approx(faint));
    for (const double signal : {bright_signal, 1e4}) CHECK(at(signal) == Approx(bright));
    const double middle = std::sqrt(faint_signal * bright_signal);
    CHECK(at(middle) == Approx(std::sqrt(bright * faint)).epsilon(0.05));  // two digits
    CHECK((at(middle) - at(0.8 * middle)) * (bright - faint) > 0);
    CHECK(at(middle) == at(middle * (1 + 1e-9)));  // bits of a transform do not matter
  }
}
