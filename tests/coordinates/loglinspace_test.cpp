#include "catch.h"

#include <mpol_cpp/coordinates/loglinspace.h>
#include <mpol_cpp/core/error.h>

#include "compare.h"
#include "golden.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("log-linear edges equal MPoL's", "[coordinates][quick]") {
  const Golden golden("utils");
  const auto& arguments = golden("in_loglinspace_start_end_nlog_mlinear");
  for (std::int64_t i = 0; i < arguments.size(0); ++i) {
    const auto row = arguments[i];
    const auto edges = loglinspace(row[0].item<double>(), row[1].item<double>(), static_cast<std::int64_t>(row[2].item<double>()),
                                   static_cast<std::int64_t>(row[3].item<double>()));
    CHECK(relative_error(torch::tensor(edges, torch::kFloat64), golden("out_loglinspace_" + std::to_string(i))) < 1e-13);
  }
}

TEST_CASE("log-linear edges increase from start to end, first by equal steps, then by equal ratios", "[coordinates][quick]") {
  const double start = GENERATE(0.0, -3.0, 2.5);
  const auto edges = loglinspace(start, 7.0, 6, 4);
  REQUIRE(edges.size() == 10);
  CHECK(edges.front() == start);
  CHECK(edges.back() == 7.0);
  for (std::size_t i = 1; i < edges.size(); ++i) CHECK(edges[i] > edges[i - 1]);
  for (std::size_t i = 1; i < 4; ++i) CHECK(edges[i] - edges[i - 1] == Approx(edges[1] - edges[0]));
  for (std::size_t i = 4; i < 10; ++i) CHECK((edges[i] - start) / (edges[i - 1] - start) == Approx(4.0 / 3.0));
}

TEST_CASE("log-linear edges that mean nothing are refused", "[coordinates][quick]") {
  CHECK_THROWS_AS(loglinspace(1, 1, 3, 3), ValueError);
  CHECK_THROWS_AS(loglinspace(0, std::numeric_limits<double>::infinity(), 3, 3), ValueError);
  CHECK_THROWS_AS(loglinspace(0, 1, 0, 3), ValueError);
  CHECK_THROWS_AS(loglinspace(0, 1, 3, 1), ValueError);
}
