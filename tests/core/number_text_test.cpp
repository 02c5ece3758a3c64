#include "catch.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

#include <mpol_cpp/core/number_text.h>

#include "comma_locale.h"

using namespace mpol;
using mpol::testing::CommaLocale;

TEST_CASE("numbers are read the same under a locale with a decimal comma", "[core]") {
  const CommaLocale comma;
  double streamed = 0;
  std::istringstream("1.5e-3") >> streamed;
  REQUIRE(streamed != 1.5e-3);  // the locale is in force
  CHECK(number_of<double>("1.5e-3") == 1.5e-3);
  CHECK(number_of<double>("1.234.567") == std::nullopt);
  CHECK(number_of<double>("1,5") == std::nullopt);
}

TEST_CASE("a number is the whole of its text but for blanks", "[core][quick]") {
  CHECK(number_of<double>(" +2.5\r\n") == 2.5);
  CHECK(number_of<double>("-inf") == -std::numeric_limits<double>::infinity());
  CHECK(number_of<std::int64_t>("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  for (const auto* text : {"", "  ", "+", "+-1", "1 2", "1x", "x", "1e400"}) {
    INFO(text);
    CHECK_FALSE(number_of<double>(text).has_value());
  }
  CHECK_FALSE(number_of<std::int64_t>("9223372036854775808").has_value());
  CHECK_FALSE(number_of<std::int64_t>("1.5").has_value());
}

TEST_CASE("numbers are taken from a text one by one", "[core][quick]") {
  std::string_view text = " 1.5\t+2 metres";
  CHECK(take_number<double>(text) == 1.5);
  CHECK(take_number<double>(text) == 2);
  CHECK_FALSE(take_number<double>(text).has_value());
  CHECK(text == " metres");
}
