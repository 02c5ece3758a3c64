#include "catch.h"

#include <ATen/ops/complex.h>
#include <ATen/ops/ones.h>

#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/core/units.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Samples of a point of one Jansky at an offset in arcsec, with noise of 0.1 Jy.
Visibilities samples_of_point(const GridCoords& coords, double east, double north, std::int64_t nvis = 4000) {
  const auto u = (uniform({nvis}, torch::kFloat64, 1) - 0.5) * 3 * coords.max_uv();  // a third lies beyond its cells
  const auto v = (uniform({nvis}, torch::kFloat64, 2) - 0.5) * 3 * coords.max_uv();
  const auto phase = -2 * units::pi * units::arcsec * (u * east + v * north);
  const auto noise = 0.1 * at::complex(normal({nvis}, torch::kFloat64, 3), normal({nvis}, torch::kFloat64, 4));
  return Visibilities(Baselines::in_lambda(u, v), at::complex(phase.cos(), phase.sin()) + noise,
                      100 * at::ones({nvis}, torch::kFloat64));
}

}  // namespace

TEST_CASE("a wide image shows a source where it is", "[analysis][quick]") {
  const GridCoords coords(0.5, 64);
  const auto map = wide_map(coords, samples_of_point(coords, 4.0, -6.5));
  const auto peak = peak_outside(map, 0);
  CHECK(peak.east == Approx(4.0).margin(0.26));
  CHECK(peak.north == Approx(-6.5).margin(0.26));
  CHECK(peak.value == Approx(0.85).margin(0.15));  // less by the width of the cells
  CHECK(std::abs(peak_outside(map, 7.5).value) < 0.3);
  CHECK(map.beam[0][0].item<double>() == Approx(1));
  CHECK(map.noise == Approx(0.1 / std::sqrt(4000.0 * 4 / 9)).epsilon(0.05));
}

TEST_CASE("the extent of flux is that of the source, not of its sidelobes", "[analysis][quick]") {
  const GridCoords coords(0.5, 64);
  const double east = GENERATE(0.0, 3.0, -11.0);
  CHECK(extent_of_flux(wide_map(coords, samples_of_point(coords, east, 2.0))) ==
        Approx(std::max(std::abs(east), 2.0)).margin(0.51));
}

TEST_CASE("where there are no samples or no flux nothing is found", "[analysis][quick]") {
  const GridCoords coords(0.5, 64);
  CHECK(extent_of_flux(WideImage(coords).map()) == 0);
  CHECK(peak_outside(WideImage(coords).map(), 1).value == 0);
  const auto data = samples_of_point(coords, 0, 0);
  const Visibilities noise(data.baselines(),
                           0.1 * at::complex(normal({4000}, torch::kFloat64, 5), normal({4000}, torch::kFloat64, 6)),
                           data.weights());
  CHECK(extent_of_flux(wide_map(coords, noise)) == 0);
}

TEST_CASE("the square of flux lies around the source, wherever that is", "[analysis][quick]") {
  const GridCoords coords(0.5, 64);
  const auto square = square_of_flux(wide_map(coords, samples_of_point(coords, 4.0, -6.5)));
  CHECK(square.east == Approx(4.0).margin(0.51));
  CHECK(square.north == Approx(-6.5).margin(0.51));
  CHECK(square.half_width >= 0.25);
  CHECK(square.half_width < 1.3);
  const auto noise_alone = samples_of_point(coords, 0, 0);
  const auto empty =
      square_of_flux(wide_map(coords, Visibilities(noise_alone.baselines(), 1e-6 * noise_alone.data(), noise_alone.weights())));
  CHECK(empty.half_width == 0);
}
