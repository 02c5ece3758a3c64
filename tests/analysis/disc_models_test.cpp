#include "catch.h"

#include <cmath>
#include <functional>
#include <vector>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/displacement.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const DiscGeometry model_geometry{
    .inclination = 50 * units::degree, .position_angle = 115 * units::degree, .offset_east = 0.3, .offset_north = -0.2};

DiscModel model_of(DiscShape shape) {
  return {.shape = shape, .flux = 0.7, .size = 0.8, .width = 0.3, .geometry = model_geometry};
}

Tensor some_baselines(std::uint64_t seed) { return (uniform({40}, torch::kFloat64, seed) - 0.5) * 1.2e6; }

/// The visibilities of a ring of 1 Jy, as a sum over points along it, whose places on the sky are written out here.
Tensor ring_of_points(double radius, const Tensor& u, const Tensor& v) {
  constexpr std::int64_t points = 128;
  const auto angle = at::arange(points, torch::kFloat64) * (2 * units::pi / points);
  const auto along = radius * at::cos(angle), across = radius * at::sin(angle) * std::cos(model_geometry.inclination);
  const double c = std::cos(model_geometry.position_angle), s = std::sin(model_geometry.position_angle);
  const auto east = model_geometry.offset_east + along * s + across * c,
             north = model_geometry.offset_north + along * c - across * s;
  const auto turns = (u.unsqueeze(1) * east + v.unsqueeze(1) * north) * units::arcsec;
  return at::polar(at::ones_like(turns), -2 * units::pi * turns).mean(1);
}

/// Those of a disc whose brightness against radius is known: Simpson's rule over rings.
Tensor disc_of_rings(const std::function<double(double)>& brightness, double edge, const Tensor& u, const Tensor& v) {
  constexpr int steps = 400;
  auto sum = at::zeros(u.sizes(), torch::kComplexDouble);
  double flux = 0;
  for (int i = 0; i <= steps; ++i) {
    const double radius = edge * i / steps, weight = (i == 0 || i == steps ? 1 : 2 + 2 * (i % 2)) * radius * brightness(radius);
    sum += weight * ring_of_points(radius, u, v);
    flux += weight;
  }
  return sum / flux;
}

}  // namespace

TEST_CASE("models have the visibilities of points and rings laid out on the sky", "[analysis][quick]") {
  const auto u = some_baselines(1), v = some_baselines(2);
  const auto near = [&](DiscShape shape, const Tensor& unit, double tolerance) {
    CHECK(relative_error(disc_visibilities(model_of(shape), u, v), 0.7 * unit) < tolerance);
  };
  near(DiscShape::point, ring_of_points(0, u, v), 1e-12);
  near(DiscShape::ring, ring_of_points(0.8, u, v), 1e-11);
  near(DiscShape::disc, disc_of_rings([](double) { return 1.0; }, 0.8, u, v), 1e-6);
  const double sigma = 0.8 / units::fwhm_per_sigma;
  near(DiscShape::gaussian, disc_of_rings([&](double r) { return std::exp(-0.5 * r * r / (sigma * sigma)); }, 2.5, u, v), 1e-6);
}

TEST_CASE("a broad ring is a thin one model_geometry through a Gaussian in the plane of the disc", "[analysis][quick]") {
  const auto u = some_baselines(3), v = some_baselines(4);
  auto blur = model_of(DiscShape::gaussian);
  blur.flux = 1;
  blur.size = 0.3;
  blur.geometry.offset_east = blur.geometry.offset_north = 0;
  const auto broad = disc_visibilities(model_of(DiscShape::broad_ring), u, v);
  CHECK(relative_error(broad, disc_visibilities(model_of(DiscShape::ring), u, v) * disc_visibilities(blur, u, v)) < 1e-14);
}

TEST_CASE("an offset is a ramp of phases, and the flux is what baselines of no length see", "[analysis][quick]") {
  const auto shape = GENERATE(DiscShape::point, DiscShape::gaussian, DiscShape::ring, DiscShape::broad_ring, DiscShape::disc);
  const auto u = some_baselines(5), v = some_baselines(6);
  auto centered = model_of(shape);
  centered.geometry.offset_east = centered.geometry.offset_north = 0;
  const auto ramp =
      displacement_phase(u, v, torch::tensor({model_geometry.offset_east, model_geometry.offset_north}, torch::kFloat64));
  CHECK(relative_error(disc_visibilities(model_of(shape), u, v), disc_visibilities(centered, u, v) * ramp) < 1e-13);
  CHECK(at::imag(disc_visibilities(centered, u, v)).abs().max().item<double>() == 0);
  const auto zero = torch::zeros({2, 3}, torch::kFloat64);
  CHECK(relative_error(disc_visibilities(model_of(shape), zero, zero), torch::full({2, 3}, 0.7, torch::kComplexDouble)) < 1e-15);
}

TEST_CASE("derivatives of models are those of finite differences", "[analysis][quick]") {
  const auto shape = GENERATE(DiscShape::point, DiscShape::gaussian, DiscShape::ring, DiscShape::broad_ring, DiscShape::disc);
  const auto u = some_baselines(7), v = some_baselines(8);
  const auto slopes = disc_visibility_slopes(model_of(shape), u, v);
  REQUIRE(slopes.size(0) == 7);
  const std::vector<std::function<double&(DiscModel&)>> parameters = {
      [](DiscModel& model) -> double& { return model.flux; },
      [](DiscModel& model) -> double& { return model.size; },
      [](DiscModel& model) -> double& { return model.width; },
      [](DiscModel& model) -> double& { return model.geometry.inclination; },
      [](DiscModel& model) -> double& { return model.geometry.position_angle; },
      [](DiscModel& model) -> double& { return model.geometry.offset_east; },
      [](DiscModel& model) -> double& { return model.geometry.offset_north; }};
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    constexpr double step = 1e-6;
    auto above = model_of(shape), below = model_of(shape);
    parameters[k](above) += step;
    parameters[k](below) -= step;
    const auto expected = (disc_visibilities(above, u, v) - disc_visibilities(below, u, v)) / (2 * step);
    INFO(k);
    CHECK((slopes[static_cast<std::int64_t>(k)] - expected).abs().max().item<double>() < 1e-7);
  }
}

TEST_CASE("models that cannot be are refused", "[analysis][quick]") {
  const auto u = some_baselines(9), v = some_baselines(10);
  auto model = model_of(DiscShape::disc);
  model.size = -0.1;
  CHECK_THROWS_AS(disc_visibilities(model, u, v), ValueError);
  model.size = std::nan("");
  CHECK_THROWS_AS(disc_visibility_slopes(model, u, v), ValueError);
  CHECK_THROWS_AS(disc_visibilities(model_of(DiscShape::disc), u, v.slice(0, 0, 5)), ShapeError);
  CHECK_THROWS_AS(disc_visibilities(model_of(DiscShape::disc), u.to(torch::kFloat32), v), ShapeError);
}
