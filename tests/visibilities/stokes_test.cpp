#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/visibilities/stokes.h>

using namespace mpol;

TEST_CASE("intensities are never negative, what differences of hands make may be", "[visibilities][quick]") {
  for (const auto stokes : {Stokes::i, Stokes::rr, Stokes::ll, Stokes::xx, Stokes::yy}) CHECK(is_intensity(stokes));
  for (const auto stokes : {Stokes::q, Stokes::u, Stokes::v, Stokes::rl, Stokes::lr, Stokes::xy, Stokes::yx})
    CHECK_FALSE(is_intensity(stokes));
}

TEST_CASE("parts of polarised light have the names and numbers of the FITS standard", "[visibilities][quick]") {
  const std::vector<std::pair<std::string, double>> all = {{"I", 1},   {"Q", 2},   {"U", 3},   {"V", 4},
                                                           {"RR", -1}, {"LL", -2}, {"RL", -3}, {"LR", -4},
                                                           {"XX", -5}, {"YY", -6}, {"XY", -7}, {"YX", -8}};
  for (const auto& [name, number] : all) {
    INFO(name);
    const auto stokes = stokes_from_name(name);
    CHECK(static_cast<double>(stokes) == number);
    CHECK(to_string(stokes) == name);
    CHECK(stokes_from_number(number) == stokes);
    CHECK(stokes_text(stokes) == (number > 0 ? "Stokes " : "correlation ") + name);
  }
  for (const double number : {0.0, 1.5, 5.0, -9.0, 1e300}) CHECK_FALSE(stokes_from_number(number).has_value());
  CHECK_THROWS_WITH(stokes_from_name("P"), ContainsSubstring("'P'") && ContainsSubstring("I, Q, U, V, RR"));
}
