#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/analysis/matching/polar_shapes.h>
#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

#include "compare.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const PolarBins shape_bins{even_edges(0, 1.2, 240), 180};

double at_bin(const Tensor& map, double radius, double azimuth) {
  const auto j = static_cast<std::int64_t>(std::floor(azimuth / (2 * units::pi) * 180));
  return map[static_cast<std::int64_t>(std::floor(radius / 0.005))][((j % 180) + 180) % 180].item<double>();
}

/// Sum over the plane, arcsec^2.
double flux(const Tensor& map) {
  const auto edges = at::tensor(shape_bins.radii, torch::kFloat64);
  const auto area = units::pi * (edges.slice(0, 1).square() - edges.slice(0, 0, -1).square()) / 180;
  return (map * area.view({-1, 1})).sum().item<double>();
}

}  // namespace

TEST_CASE("a disc has its area, between the edges of bins too", "[analysis][matching][quick]") {
  for (const double radius : {0.5, 0.5023, 0.001, 2.0}) {
    const double within = std::min(radius, 1.2);
    CHECK(flux(disc_template(shape_bins, radius)) == Approx(units::pi * within * within).epsilon(1e-12));
  }
}

TEST_CASE("a ring has its radius and width, and an arc is its part about azimuth 0", "[analysis][matching][quick]") {
  const auto ring = ring_template(shape_bins, 0.6025, 0.1);
  CHECK(at_bin(ring, 0.6025, 1) == Approx(1));
  CHECK(at_bin(ring, 0.6525, 2) == Approx(0.5));
  CHECK(at_bin(ring, 0.5525, 3) == Approx(0.5));
  for (const double opening : {0.01, 0.5, 2.2, 5.0, 2 * units::pi}) {
    const auto arc = arc_template(shape_bins, 0.6025, 0.1, opening);
    CHECK(flux(arc) == Approx(flux(ring) * opening / (2 * units::pi)).epsilon(1e-12));
    CHECK(relative_error(arc.flip(1), arc) < 1e-12);  // symmetric about azimuth 0
  }
  CHECK(at_bin(arc_template(shape_bins, 0.6025, 0.1, 1), 0.6025, 0.4) == Approx(1));
  CHECK(at_bin(arc_template(shape_bins, 0.6025, 0.1, 1), 0.6025, 0.6) == 0);
}

TEST_CASE("arms of a spiral go outwards at their pitch, all alike", "[analysis][matching][quick]") {
  for (const double pitch : {0.3, -0.5}) {
    for (const std::int64_t arms : {1, 2, 3}) {
      const auto map = spiral_template(shape_bins, {.radius = 0.5, .width = 0.08, .pitch = pitch, .arms = arms});
      for (const double radius : {0.3025, 0.5025, 0.9025}) {
        const double arm = std::log(radius / 0.5) / std::tan(pitch), between = 2 * units::pi / static_cast<double>(arms);
        for (std::int64_t k = 0; k < arms; ++k) CHECK(at_bin(map, radius, arm + static_cast<double>(k) * between) > 0.9);
        const double half = 0.04 / (radius * std::sin(std::abs(pitch)));  // in azimuth
        if (half < between / 2) CHECK(at_bin(map, radius, arm + half) == Approx(0.5).margin(0.15));
      }
      CHECK(relative_error(map.roll(180 / arms, 1), map) < 1e-10);
      CHECK(relative_error(spiral_template(shape_bins, {.radius = 0.5, .width = 0.08, .pitch = -pitch, .arms = arms}),
                           map.flip(1)) < 1e-10);
    }
  }
}

TEST_CASE("shapes that cannot be are refused", "[analysis][matching][quick]") {
  CHECK_THROWS_AS(disc_template(shape_bins, 0), ValueError);
  CHECK_THROWS_AS(ring_template(shape_bins, 1, -0.1), ValueError);
  CHECK_THROWS_AS(ring_template(shape_bins, 1, NAN), ValueError);
  CHECK_THROWS_AS(arc_template(shape_bins, 1, 0.1, 7), ValueError);
  CHECK_THROWS_AS(spiral_template(shape_bins, {.radius = 1, .width = 0.1, .pitch = 0}), ValueError);
  CHECK_THROWS_AS(spiral_template(shape_bins, {.radius = 1, .width = 0.1, .pitch = 1.6}), ValueError);
  CHECK_THROWS_AS(spiral_template(shape_bins, {.radius = 1, .width = 0.1, .pitch = 0.3, .arms = 0}), ValueError);
  CHECK_THROWS_AS(disc_template({{0, 1, 1}, 10}, 1), ValueError);
  CHECK_THROWS_AS(disc_template({{0, 1}, 0}, 1), ValueError);
}
