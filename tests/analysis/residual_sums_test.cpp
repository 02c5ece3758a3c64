#include "catch.h"

#include <ATen/ops/complex.h>

#include <mpol_cpp/analysis/residual_sums.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("sums over blocks of residuals say what all residuals at once say", "[analysis][quick]") {
  const double scale = GENERATE(0.3, 1.0, 40.0);
  constexpr std::int64_t nvis = 6000;
  auto normalized = at::complex(normal({nvis}, torch::kFloat64, 1), normal({nvis}, torch::kFloat64, 2)) * scale;
  normalized.narrow(0, 0, 120).mul_(12);  // outliers
  const auto weights = 0.5 + 4 * uniform({nvis}, torch::kFloat64, 3);
  const auto u = 3e4 * normal({nvis}, torch::kFloat64, 4), v = 3e4 * normal({nvis}, torch::kFloat64, 5);
  const auto residual = normalized / weights.sqrt();
  ResidualSums sums(GridCoords(0.5, 64));
  for (std::int64_t begin = 0; begin < nvis; begin += 1700) {
    const auto length = std::min<std::int64_t>(1700, nvis - begin);
    sums.add(u.narrow(0, begin, length), v.narrow(0, begin, length), residual.narrow(0, begin, length),
             weights.narrow(0, begin, length));
  }
  const auto expected = residual_statistics(normalized), found = sums.statistics();
  CHECK(found.samples == expected.samples);
  CHECK(found.mean == Approx(expected.mean).margin(1e-9 * scale));
  CHECK(found.standard_deviation == Approx(expected.standard_deviation));
  CHECK(found.sigma_factor == Approx(expected.sigma_factor).epsilon(0.006));
  CHECK(found.beyond_four == Approx(expected.beyond_four).epsilon(0.02));
  const auto histogram = residual_histogram(normalized), own = sums.histogram();
  CHECK(at::allclose(own.edges, histogram.edges));
  CHECK(at::allclose(own.density, histogram.density, 1e-9, 1e-3));
  CHECK(at::allclose(own.expected, histogram.expected));
}

TEST_CASE("no residuals have no statistics", "[analysis][quick]") {
  const ResidualSums sums(GridCoords(0.5, 64));
  CHECK(sums.statistics().samples == 0);
  CHECK(sums.statistics().sigma_factor == 0);
  CHECK(sums.histogram().density.sum().item<double>() == 0);
  CHECK(sums.wide().noise == 0);
}
