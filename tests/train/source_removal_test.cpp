#include "catch.h"

#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/ops/polar.h>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/train/source_removal.h>
#include <mpol_cpp/visibilities/phase_center.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords source_grid(0.05, 32);  // a field of 1.6"

/// A Gaussian of 1 Jy at an offset in arcsec, a hundred and more times brighter than the noise of a sample; the shortest
/// baselines see scales of 3".
Visibilities bright_source(double east, double north, torch::Dtype dtype, double noise = 0.005) {
  const std::int64_t nvis = 6000;
  const double longest = 0.9 * source_grid.max_uv(), shortest = 0.02 * longest;
  const auto q = shortest + (longest - shortest) * uniform({nvis}, torch::kFloat64, 21);
  const auto angle = 2 * units::pi * uniform({nvis}, torch::kFloat64, 22);
  const auto u = q * angle.cos(), v = q * angle.sin();
  const auto envelope = at::exp((u.square() + v.square()) * (-6 / std::pow(longest, 2)));
  const auto source = at::polar(envelope, -2 * units::pi * units::arcsec * (east * u + north * v));
  const auto data = source + noise * std::sqrt(2.0) * normal({nvis}, torch::kComplexDouble, 23);
  return {Baselines::in_lambda(u, v), data.to(dtype), torch::full({nvis}, 1 / (noise * noise), torch::kFloat64)};
}

double sigma_factor(const Visibilities& visibilities) {
  return residual_statistics(visibilities.data() * visibilities.weights().sqrt()).sigma_factor;
}

}  // namespace

TEMPLATE_TEST_CASE("another phase centre turns the phases alone, and back again", "[train][quick]", float, double) {
  const auto dtype = complex_dtype_of<TestType>();
  const auto visibilities = bright_source(0.4, -0.3, dtype, 1e-6);
  const auto centered = with_center(visibilities, 0.4, -0.3);
  CHECK(centered.data().scalar_type() == dtype);
  CHECK(at::imag(centered.data()).abs().max().template item<double>() < 1e-5);
  CHECK(at::real(centered.data()).min().template item<double>() > 0);
  const auto back = with_center(centered, -0.4, 0.3);
  CHECK(relative_error(back.data(), visibilities.data()) < (std::is_same_v<TestType, float> ? 1e-6 : 1e-14));
  CHECK(at::equal(centered.weights(), visibilities.weights()));
}

TEST_CASE("a field that holds the flux stays; one around the flux takes the place of one that does not", "[train][quick]") {
  const auto inside = source_field(source_grid, bright_source(0.2, 0.1, torch::kComplexDouble));
  CHECK(inside.east == 0);
  CHECK(inside.north == 0);
  CHECK(inside.coords.npix() == source_grid.npix());
  const auto outside = source_field(source_grid, bright_source(1.8, -1.2, torch::kComplexDouble));
  const double half = outside.coords.cell_size() * static_cast<double>(outside.coords.npix()) / 2;
  CHECK(std::abs(outside.east - 1.8) < half / 2);
  CHECK(std::abs(outside.north + 1.2) < half / 2);
  CHECK(outside.coords.cell_size() >= source_grid.cell_size());
}

TEMPLATE_TEST_CASE("what is left without the source is the noise, in the field and outside of it", "[train]", float, double) {
  for (const auto& [east, north] : std::vector<std::pair<double, double>>{{0, 0}, {0.4, -0.3}, {1.8, -1.2}}) {
    for (const double factor : {0.25, 1.0, 4.0}) {
      auto visibilities = bright_source(east, north, complex_dtype_of<TestType>());
      visibilities = Visibilities(visibilities.baselines(), visibilities.data(), factor * visibilities.weights());
      INFO("offset " << east << ", " << north << ", weights times " << factor);
      CHECK(sigma_factor(visibilities) > 1.2 * std::sqrt(factor));
      const auto noise = without_source(visibilities, source_field(source_grid, visibilities));
      CHECK(sigma_factor(noise) == Approx(std::sqrt(factor)).epsilon(0.05));
    }
  }
}
