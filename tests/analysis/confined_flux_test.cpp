// Where the flux of a wide field ends, also where few antennas hide it in their sidelobes.
#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/analysis/field/confined_flux.h>
#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double noise_of_sample = 0.01;  // of real and imaginary part, Jy

/// A Gaussian.
struct Blob {
  double east, north, width;  // arcsec, the standard deviation
  double flux = 1;            // Jy
};

/// The tracks of ten antennas within an hour or two, which see nothing of scales above some arcseconds.
Baselines few_tracks() {
  const auto turn = at::linspace(-0.4, 0.4, 25, torch::kFloat64);
  const auto places = 1e5 * normal({10, 2}, torch::kFloat64, 41);
  std::vector<Tensor> us, vs;
  for (std::int64_t i = 0; i < 10; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      const auto apart = places[i] - places[j];
      us.push_back(apart[0] * turn.cos() + apart[1] * turn.sin());
      vs.push_back(0.6 * (apart[1] * turn.cos() - apart[0] * turn.sin()));
    }
  }
  return Baselines::in_lambda(at::cat(us), at::cat(vs));
}

/// @param factor  of the sky; noise stays the same
Visibilities blobs_of(const std::vector<Blob>& blobs, double factor = 1, double promised = 1) {
  const auto baselines = few_tracks();
  const auto [u, v] = baselines.channel(0);
  auto data = at::complex(normal(u.sizes(), torch::kFloat64, 42), normal(u.sizes(), torch::kFloat64, 43)) * noise_of_sample;
  for (const auto& blob : blobs) {
    const double width = blob.width * units::arcsec;
    const auto envelope = ((u.square() + v.square()) * (-2 * std::pow(units::pi * width, 2))).exp();
    const auto place = torch::tensor({blob.east, blob.north}, torch::kFloat64);
    data = data + factor * blob.flux * envelope * displacement_phase(u, v, place);
  }
  return {baselines, data, torch::full_like(u, std::pow(promised / noise_of_sample, 2))};
}

WideMap map_of(const Visibilities& data) {
  const auto width = widest_field(data, summarize_uv(data.baselines())).width;
  return wide_map(GridCoords(width / 256, 256), data);
}

double half_of(const WideMap& map) { return map.coords.cell_size() * 128; }

}  // namespace

TEST_CASE("the least square that holds all flux is found where sidelobes hide most of it", "[analysis][quick]") {
  const double sign = GENERATE(1.0, -1.0);
  const std::vector<Blob> blobs = {{0.2, 0.1, 0.05}, {-1.1, 0.6, 0.08, 0.15}, {0.9, -1.2, 0.1, 0.15}};
  const auto map = map_of(blobs_of(blobs, sign));
  CHECK(extent_of_flux(map) < 0.5);  // which sees the brightest alone
  const double half = confining_half_width(map, 0, 0, extent_of_flux(map));
  CHECK(half > 1.1);
  CHECK(half < 0.8 * half_of(map));
  const double off_center = confining_half_width(map, -0.1, -0.3, 0.1);
  CHECK(off_center > 1);
  CHECK(off_center < 0.8 * half_of(map));
}

TEST_CASE("one compact source is confined where it is, by any start", "[analysis][quick]") {
  const auto map = map_of(blobs_of({{0.5, -0.4, 0.05}}));
  CHECK(confining_half_width(map, 0.5, -0.4, 0) < 0.3);
  const double half = confining_half_width(map, 0, 0, 0);
  CHECK(half > 0.45);
  CHECK(half < 0.9);
  CHECK(confining_half_width(map, 0, 0, 1.5) == 1.5);
}

TEST_CASE("noise alone, also more than the weights say, confines nothing, and what fills the map is not confined",
          "[analysis][quick]") {
  CHECK(confining_half_width(map_of(blobs_of({})), 0, 0, 0) == 0);
  const auto doubted = map_of(blobs_of({}, 1, 3));
  REQUIRE(doubted.scatter);
  CHECK(*doubted.scatter == Approx(3).epsilon(0.1));
  CHECK(confining_half_width(doubted, 0, 0, 0) == 0);
  CHECK(*map_of(blobs_of({})).scatter == Approx(1).epsilon(0.1));
  CHECK(confining_half_width(WideImage(GridCoords(0.1, 64)).map(), 0, 0, 0) == 0);
  const double edge = 0.95 * half_of(doubted);
  const auto full = map_of(blobs_of({{edge, edge, 0.05}, {-edge, -edge, 0.05}, {0, edge, 0.05}, {-edge, 0, 0.05}}));
  CHECK(confining_half_width(full, 0, 0, 0) == half_of(full));
}

TEST_CASE("where no beam bounds the field, a look goes as far as there is flux, and no further for noise", "[analysis][quick]") {
  const auto uv = summarize_uv(few_tracks());
  const auto widest_of = [&](const Visibilities& data) { return widest_field(data, uv).width; };
  const double half = widest_of(blobs_of({})) / 2;
  const auto wide = blobs_of({{1.3 * half, 0.2 * half, 0.05}, {-1.3 * half, -0.4 * half, 0.06, 0.8}});
  const auto field = choose_field(wide, uv);
  CHECK(field.width > 2.6 * half);
  CHECK(field.width < 8 * half);
  CHECK(field.reason.find("times the scale of the shortest baseline") != std::string::npos);
  CHECK(choose_field(blobs_of({}), uv).width <= 2 * half);
  CHECK(choose_field(blobs_of({{0.1 * half, 0, 0.05}}), uv).width <= 2 * half);
  auto known = wide;  // an antenna that sees less
  known.set_frequencies(torch::tensor({230e9}, torch::kFloat64));
  Observation observation;
  observation.telescope = "ALMA";
  known.set_observation(observation);
  CHECK(choose_field(known, uv).width <= widest_of(known));
}

TEST_CASE("the field of few antennas holds a source that is larger than what they see of it", "[analysis][quick]") {
  const std::vector<Blob> blobs = {{0.2, 0.1, 0.05}, {-1.1, 0.6, 0.08, 0.15}, {0.9, -1.2, 0.1, 0.15}};
  for (const double factor : {1.0, 20.0}) {
    const auto data = blobs_of(blobs, factor);
    const auto uv = summarize_uv(data.baselines());
    CAPTURE(factor);
    CHECK(choose_field(data, uv).width > 2.8);
    CHECK(choose_field(data, uv, FieldPlace::around_flux).width > 2.4);
  }
}
