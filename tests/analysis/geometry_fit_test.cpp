#include "catch.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/analysis/disc_fit/geometry_equations.h>
#include <mpol_cpp/analysis/disc_fit/geometry_fit.h>
#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/simulation/fake_data.h>

#include "compare.h"
#include "random.h"
#include "threads.h"
#include "warnings.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const DiscGeometry tilted_disc{
    .inclination = 40 * units::degree, .position_angle = 65 * units::degree, .offset_east = 0.12, .offset_north = -0.21};

/// Baselines whose density falls with their length, up to about 1.2e6 wavelengths.
Baselines centered_baselines(std::int64_t nvis) {
  const auto length = 3e4 + 1.2e6 * uniform({nvis}, torch::kFloat64, 11).square();
  const auto angle = 2 * units::pi * uniform({nvis}, torch::kFloat64, 12);
  return Baselines::in_lambda(length * at::cos(angle), length * at::sin(angle));
}

/// Sources as an observation without noise sees them, with weights of `sigma` Jy for each part of a visibility.
Visibilities observe(const std::vector<DiscModel>& sources, double sigma, std::int64_t nvis = 2000) {
  const auto baselines = centered_baselines(nvis);
  const auto [u, v] = baselines.channel(0);
  auto data = at::zeros({nvis}, torch::kComplexDouble);
  for (const auto& source : sources) data += disc_visibilities(source, u, v);
  return {baselines, data, torch::full({nvis}, 1 / (sigma * sigma), torch::kFloat64)};
}

/// Three rings, which no simple model describes.
std::vector<DiscModel> ringed_disc(const DiscGeometry& geometry) {
  return {{DiscShape::gaussian, 0.04, 0.25, 0, geometry},
          {DiscShape::broad_ring, 0.07, 0.4, 0.12, geometry},
          {DiscShape::broad_ring, 0.05, 0.75, 0.2, geometry}};
}

DiscModel model_for(GeometryModel model) {
  if (model == GeometryModel::ring) return {DiscShape::broad_ring, 0.1, 0.6, 0.25, tilted_disc};
  return {model == GeometryModel::disc ? DiscShape::disc : DiscShape::gaussian, 0.1, 0.6, 0, tilted_disc};
}

GeometryFit fit_as(const Visibilities& visibilities, GeometryModel model) {
  return fit_geometry(visibilities, GeometryFitOptions().model(model));
}

/// Inclination, position angle (radian), offsets (arcsec).
std::array<double, 4> numbers(const DiscGeometry& geometry) {
  return {geometry.inclination, geometry.position_angle, geometry.offset_east, geometry.offset_north};
}

double largest_difference(const DiscGeometry& a, const DiscGeometry& b) {
  double largest = 0;
  for (std::size_t i = 0; i < 4; ++i) largest = std::max(largest, std::abs(numbers(a)[i] - numbers(b)[i]));
  return largest;
}

std::size_t said(const Warnings& warnings, const std::string& words) {
  const auto has_words = [&words](const std::string& warning) { return warning.find(words) != std::string::npos; };
  return static_cast<std::size_t>(std::count_if(warnings.said().begin(), warnings.said().end(), has_words));
}

}  // namespace

TEST_CASE("simple models without noise are found to six digits", "[analysis][quick]") {
  const auto model = GENERATE(GeometryModel::gaussian, GeometryModel::ring, GeometryModel::disc);
  const auto truth = model_for(model);
  const auto fit = fit_as(observe({truth}, 1e-4), model);
  CHECK(fit.converged);
  CHECK(fit.warnings.empty());
  CHECK(largest_difference(fit.geometry, tilted_disc) < 1e-6);
  CHECK(fit.flux.value == Approx(truth.flux).epsilon(1e-6));
  CHECK(fit.size->value == Approx(truth.size).epsilon(1e-6));
  CHECK(fit.width.has_value() == (model == GeometryModel::ring));
  if (fit.width) CHECK(fit.width->value == Approx(truth.width).epsilon(1e-5));
  const auto q = torch::tensor({0.0, 1e5, 4e5}, torch::kFloat64);
  auto face_on = truth;
  face_on.geometry = {};
  CHECK(relative_error(fit.model_at(q), at::real(disc_visibilities(face_on, q, at::zeros_like(q)))) < 1e-5);
}

TEST_CASE("the free profile finds the geometry of a disc of rings, and its profile", "[analysis][quick]") {
  const double inclination = GENERATE(8.0, 40.0, 75.0), angle = GENERATE(3.0, 95.0, 179.0);
  auto geometry = tilted_disc;
  geometry.inclination = inclination * units::degree;
  geometry.position_angle = angle * units::degree;
  const auto sources = ringed_disc(geometry);
  const auto fit = fit_as(observe(sources, 1e-4), GeometryModel::free);
  CHECK(fit.converged);
  CHECK(largest_difference(fit.geometry, geometry) < 3e-3);
  CHECK(fit.flux.value == Approx(0.16).epsilon(0.01));
  const auto q = torch::linspace(3e4, 5e5, 40, torch::kFloat64);
  auto expected = at::zeros_like(q);
  for (auto source : sources) {
    source.geometry = {};
    expected += at::real(disc_visibilities(source, q, at::zeros_like(q)));
  }
  CHECK((fit.model_at(q) - expected).abs().max().item<double>() < 1e-3);
}

TEST_CASE("errors tell how far fits of noisy data lie from the truth", "[analysis]") {
  const auto model = GENERATE(GeometryModel::free, GeometryModel::gaussian, GeometryModel::ring);
  INFO(name_of(model));
  const auto clean = observe(model == GeometryModel::free ? ringed_disc(tilted_disc) : std::vector{model_for(model)}, 0.02);
  constexpr int seeds = 100;
  const Warnings warnings;
  std::array<double, 4> squares{}, sums{};
  int all_within = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto fit = fit_as(add_noise(clean, seed), model);
    bool within = true;
    for (std::size_t i = 0; i < 4; ++i) {
      const double pull = (numbers(fit.geometry)[i] - numbers(tilted_disc)[i]) / numbers(fit.errors)[i];
      squares[i] += pull * pull / seeds;
      sums[i] += pull / seeds;
      within = within && std::abs(pull) < 3;
    }
    all_within += within ? 1 : 0;
  }
  CHECK(all_within >= 95);
  CHECK(warnings.said().size() <= 3);
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(i);
    CHECK(std::sqrt(squares[i]) == Approx(1).margin(0.22));
    CHECK(std::abs(sums[i]) < 0.4);
  }
}

TEST_CASE("a turned and displaced sky turns and displaces what is found", "[analysis][quick]") {
  const auto model = GENERATE(GeometryModel::gaussian, GeometryModel::free);
  const auto data = add_noise(observe(ringed_disc(tilted_disc), 0.002), 4);
  const auto fit = fit_as(data, model);
  constexpr double turn = 30 * units::degree;  // East of North
  const auto [u, v] = data.baselines().channel(0);
  const auto turned_u = u * std::cos(turn) + v * std::sin(turn), turned_v = v * std::cos(turn) - u * std::sin(turn);
  const auto turned = fit_as({Baselines::in_lambda(turned_u, turned_v), data.data(), data.weights()}, model);
  CHECK(turned.geometry.position_angle - fit.geometry.position_angle == Approx(turn).margin(1e-4));
  CHECK(turned.geometry.inclination == Approx(fit.geometry.inclination).margin(1e-4));
  const double east = fit.geometry.offset_east, north = fit.geometry.offset_north;
  CHECK(turned.geometry.offset_east == Approx(east * std::cos(turn) + north * std::sin(turn)).margin(1e-4));
  CHECK(turned.geometry.offset_north == Approx(north * std::cos(turn) - east * std::sin(turn)).margin(1e-4));
  CHECK(turned.chi_squared == Approx(fit.chi_squared).epsilon(1e-4));
}

TEST_CASE("a disc far from the phase centre is found", "[analysis][quick]") {
  auto geometry = tilted_disc;
  geometry.offset_east = -2.3;
  geometry.offset_north = 1.7;
  const auto fit = fit_as(add_noise(observe(ringed_disc(geometry), 0.005), 8), GeometryModel::free);
  CHECK(std::abs(fit.geometry.offset_east + 2.3) < 5 * fit.errors.offset_east);
  CHECK(std::abs(fit.geometry.offset_north - 1.7) < 5 * fit.errors.offset_north);
  CHECK(std::abs(fit.geometry.inclination - tilted_disc.inclination) < 5 * fit.errors.inclination);
}

TEST_CASE("all channels are used, each at its own baselines", "[analysis][quick]") {
  const auto one = observe(ringed_disc(tilted_disc), 0.004);
  const auto metres = centered_baselines(2000).channel(0);
  const auto frequencies = torch::tensor({units::speed_of_light, 1.1 * units::speed_of_light}, torch::kFloat64);
  const auto baselines = Baselines::in_metres(metres.first, metres.second, frequencies);
  std::vector<Tensor> channels;
  for (std::int64_t c = 0; c < 2; ++c) {
    const auto [u, v] = baselines.channel(c);
    auto data = at::zeros({2000}, torch::kComplexDouble);
    for (const auto& source : ringed_disc(tilted_disc)) data += disc_visibilities(source, u, v);
    channels.push_back(data);
  }
  const Visibilities two(baselines, at::stack(channels), one.weights().expand({2, 2000}).contiguous());
  const auto fit = fit_as(two, GeometryModel::free), alone = fit_as(one, GeometryModel::free);
  CHECK(fit.samples == 4000);
  CHECK(largest_difference(fit.geometry, tilted_disc) < 3e-3);
  CHECK(fit.errors.inclination < 0.85 * alone.errors.inclination);
  const auto profile = geometry_profile(two, fit, 20);
  CHECK(profile.after.mean.sizes() == at::IntArrayRef({1, 20}));
  CHECK(profile.after.samples.sum().item<std::int64_t>() == 4000);
  const auto filled = profile.after.samples[0] > 0;
  CHECK((at::imag(profile.after.mean[0]).masked_select(filled)).abs().max().item<double>() < 1e-3);
  CHECK((at::imag(profile.before.mean[0])).abs().max().item<double>() > 5e-3);
}

TEST_CASE("geometries are the same bits for any number of threads", "[analysis][quick]") {
  const auto model = GENERATE(GeometryModel::ring, GeometryModel::free);
  const auto data = add_noise(observe(ringed_disc(tilted_disc), 0.01, 30000), 3);
  const auto with_threads = [&](int count) {
    const Threads threads(count);
    return fit_as(data, model);
  };
  const auto one = with_threads(1), three = with_threads(3);
  CHECK(numbers(one.geometry) == numbers(three.geometry));
  CHECK(numbers(one.errors) == numbers(three.errors));
  CHECK(one.chi_squared == three.chi_squared);
}

TEST_CASE("the equations of the free profile are the slopes of its chi^2", "[analysis][quick]") {
  const auto data = add_noise(observe(ringed_disc(tilted_disc), 0.01), 6);
  const auto tilt = Tilt::of(tilted_disc);
  const NormalEquations::Vector at = {tilt.along + 0.1, tilt.across - 0.05, 0.15, -0.2};
  constexpr double step = 1e-5;
  const ProfileKnots knots{3e4, std::vector<double>(30, 5.0)};
  const auto equations = profile_equations(data, at, knots);
  CHECK(equations.chi_squared == Approx(fit_profile(data, at, knots).chi_squared).epsilon(1e-10));
  for (std::size_t i = 0; i < 4; ++i) {
    auto above = at, below = at;
    above[i] += step;
    below[i] -= step;
    const double slope = (fit_profile(data, above, knots).chi_squared - fit_profile(data, below, knots).chi_squared) / (2 * step);
    INFO(i);
    CHECK(-2 * equations.gradient[i] == Approx(slope).epsilon(1e-4));
  }
}

TEST_CASE("a disc seen face on has an inclination near 0 and no position angle", "[analysis][quick]") {
  const auto model = GENERATE(GeometryModel::gaussian, GeometryModel::free);
  auto geometry = tilted_disc;
  geometry.inclination = 0;
  const auto sources =
      model == GeometryModel::free ? ringed_disc(geometry) : std::vector<DiscModel>{{DiscShape::gaussian, 0.1, 0.6, 0, geometry}};
  const Warnings warnings;
  const auto fit = fit_as(add_noise(observe(sources, 0.01), 21), model);
  CHECK_FALSE(fit.inclination_found);
  CHECK(fit.errors.position_angle == Approx(units::pi / 2));
  CHECK(fit.geometry.inclination < 4 * fit.errors.inclination);
  CHECK(fit.errors.inclination < 20 * units::degree);
  REQUIRE(fit.warnings.size() == 1);
  CHECK(fit.warnings[0].find("face on") != std::string::npos);
  CHECK(said(warnings, "face on") == 1);
}

TEST_CASE("a source that is not resolved, or not symmetric, is said to be", "[analysis][quick]") {
  const Warnings warnings;
  auto point = fit_as(add_noise(observe({{DiscShape::point, 0.1, 0, 0, tilted_disc}}, 0.01), 5), GeometryModel::gaussian);
  CHECK(said(warnings, "not resolved") == 1);
  CHECK(point.geometry.offset_east == Approx(tilted_disc.offset_east).margin(5 * point.errors.offset_east));

  auto lopsided = ringed_disc(tilted_disc);
  lopsided.push_back({DiscShape::gaussian, 0.05, 0.2, 0, {.offset_east = 0.6, .offset_north = 0.1}});
  const auto data = add_noise(observe(lopsided, 0.005), 9);
  const auto fit = fit_as(data, GeometryModel::free);
  CHECK(residual_structure(data, fit) > 1.5);
  CHECK(said(warnings, "not symmetric") == 1);
  const auto right = add_noise(observe(ringed_disc(tilted_disc), 0.005), 9);
  CHECK(residual_structure(right, fit_as(right, GeometryModel::free)) == Approx(1).margin(0.35));
}

TEST_CASE("where the model is wrong the residuals make the errors, not the weights", "[analysis][quick]") {
  const Warnings warnings;
  auto lopsided = ringed_disc(tilted_disc);
  lopsided.push_back({DiscShape::gaussian, 0.05, 0.2, 0, {.offset_east = 0.6, .offset_north = 0.1}});
  const auto data = observe(lopsided, 0.005);
  const auto with_weights = [&](double factor) {
    return fit_as({data.baselines(), data.data(), factor * data.weights()}, GeometryModel::gaussian);
  };
  const auto fit = with_weights(1), sure = with_weights(25);
  CHECK(said(warnings, "not what the model says") == 2);
  CHECK(sure.structure == Approx(25 * fit.structure).epsilon(1e-6));
  CHECK(sure.errors.inclination == Approx(fit.errors.inclination).epsilon(1e-4));
  CHECK(sure.errors.position_angle == Approx(fit.errors.position_angle).epsilon(1e-4));
  CHECK(sure.errors.offset_east == Approx(fit.errors.offset_east).epsilon(1e-4));
  CHECK(sure.flux.error == Approx(fit.flux.error).epsilon(1e-4));
  CHECK(sure.size->error == Approx(fit.size->error).epsilon(1e-4));
  const auto right = fit_as(observe({model_for(GeometryModel::gaussian)}, 0.005), GeometryModel::gaussian);
  CHECK(fit.errors.offset_east > 2 * right.errors.offset_east);
}

TEST_CASE("weights that are too large make the errors larger, in proportion", "[analysis][quick]") {
  const auto data = add_noise(observe({model_for(GeometryModel::gaussian)}, 0.01), 2);
  const auto fit = fit_as(data, GeometryModel::gaussian);
  const auto boasting = fit_as({data.baselines(), data.data(), 9 * data.weights()}, GeometryModel::gaussian);
  CHECK(boasting.reduced_chi_squared() == Approx(9 * fit.reduced_chi_squared()));
  const double scale = std::sqrt(std::max(1.0, fit.reduced_chi_squared()));
  CHECK(boasting.errors.inclination ==
        Approx(fit.errors.inclination * std::sqrt(fit.reduced_chi_squared()) / scale).epsilon(1e-3));
}

TEST_CASE("data and options without a geometry are refused", "[analysis][quick]") {
  const auto data = observe({model_for(GeometryModel::gaussian)}, 0.01);
  CHECK_THROWS_AS(fit_geometry(data.select(torch::arange(19))), DataError);
  CHECK_THROWS_AS(fit_geometry(data, GeometryFitOptions().most_iterations(0)), ValueError);
  const auto zero = torch::zeros({50}, torch::kFloat64);
  CHECK_THROWS_AS(fit_geometry({Baselines::in_lambda(zero, zero), torch::ones({50}, torch::kComplexDouble), zero + 1}),
                  DataError);
  const Visibilities empty(data.baselines(), at::zeros_like(data.data()), data.weights());
  CHECK_THROWS_AS(fit_geometry(add_noise(empty, 3)), DataError);
  const auto fit = fit_as(data, GeometryModel::gaussian);
  CHECK_THROWS_AS(geometry_profile(data, fit, 0), ValueError);
}
