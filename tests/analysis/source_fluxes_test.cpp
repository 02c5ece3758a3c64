#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/complex.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/sources/source_fluxes.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t flux_samples = 700, flux_channels = 3;

const std::vector<DiscModel> flux_sources = {
    {.shape = DiscShape::point, .flux = 5, .size = 0, .width = 0, .geometry = {.offset_east = 0.4, .offset_north = -0.3}},
    {.shape = DiscShape::gaussian,
     .flux = 5,
     .size = 0.5,
     .width = 0,
     .geometry = {.inclination = 0.6, .position_angle = 1.1, .offset_east = -0.1, .offset_north = 0.1}},
    {.shape = DiscShape::broad_ring, .flux = 5, .size = 0.7, .width = 0.2, .geometry = {.inclination = 0.3}}};

/// Jy of each source in each channel; one is negative, one nothing.
const Tensor true_fluxes = torch::tensor({0.3, 0.9, -0.1, 0.5, 0.0, 0.4, 0.7, 1.1, 0.2}, torch::kFloat64).view({3, 3});

Tensor flux_baselines(std::uint64_t seed) { return (uniform({flux_samples}, torch::kFloat64, seed) - 0.5) * 1.2e6; }

/// What the sources look like, with noise of the weights where `noise` is 1.
Visibilities observed_sources(bool shared, double noise, std::uint64_t seed) {
  const auto u = flux_baselines(1), v = flux_baselines(2);
  std::vector<Tensor> data, us, vs;
  const auto weights = 40 + 60 * uniform({flux_channels, flux_samples}, torch::kFloat64, 3);
  for (std::int64_t c = 0; c < flux_channels; ++c) {
    const double scale = shared ? 1 : 1 + 0.1 * static_cast<double>(c);
    us.push_back(u * scale);
    vs.push_back(v * scale);
    auto sum = at::zeros({flux_samples}, torch::kComplexDouble);
    for (std::size_t s = 0; s < flux_sources.size(); ++s) {
      auto source = flux_sources[s];
      source.flux = true_fluxes[c][static_cast<std::int64_t>(s)].item<double>();
      sum += disc_visibilities(source, us.back(), vs.back());
    }
    const auto own = seed + 2 * static_cast<std::uint64_t>(c);
    const auto error =
        at::complex(normal({flux_samples}, torch::kFloat64, own), normal({flux_samples}, torch::kFloat64, own + 1));
    data.push_back(sum + noise * error / weights[c].sqrt());
  }
  const auto baselines = shared ? Baselines::in_lambda(u, v) : Baselines::in_lambda(at::stack(us), at::stack(vs));
  return {baselines, at::stack(data), weights};
}

}  // namespace

TEST_CASE("fluxes of sources beside each other are found in every channel", "[analysis][sources][quick]") {
  for (const bool shared : {true, false}) {
    const auto found = source_fluxes(observed_sources(shared, 0, 10), flux_sources);
    CHECK(relative_error(found.flux, true_fluxes) < 1e-10);
    CHECK(found.chi_squared.max().item<double>() < 1e-6);
    CHECK(at::equal(found.error, found.covariance.diagonal(0, 1, 2).sqrt()));
  }
}

TEST_CASE("errors of fluxes are what they scatter by", "[analysis][sources][quick]") {
  constexpr int seeds = 200;
  std::vector<Tensor> pulls;
  double chi_squared = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto found = source_fluxes(observed_sources(true, 1, 100 + 10 * static_cast<std::uint64_t>(seed)), flux_sources);
    pulls.push_back((found.flux - true_fluxes) / found.error);
    chi_squared += found.chi_squared.mean().item<double>() / seeds;
  }
  const auto all = at::stack(pulls);
  constexpr double tolerated = 5;  // standard deviations of what is estimated
  CHECK(all.mean(0).abs().max().item<double>() < tolerated / std::sqrt(seeds));
  CHECK((all.square().mean(0) - 1).abs().max().item<double>() < tolerated * std::sqrt(2.0 / seeds));
  constexpr double freedom = 2 * flux_samples - 3;
  CHECK_THAT(chi_squared, WithinAbs(freedom, tolerated * std::sqrt(2 * freedom / (seeds * flux_channels))));
}

TEST_CASE("one source alone has the weighted mean of the visibilities about its place", "[analysis][sources][quick]") {
  const auto data = observed_sources(true, 1, 5);
  const auto found = source_fluxes(data, {flux_sources[0]});
  auto unit = flux_sources[0];
  unit.flux = 1;
  const auto model = disc_visibilities(unit, flux_baselines(1), flux_baselines(2));
  const auto expected = (data.weights() * at::real(model.conj() * data.data())).sum(1) / data.weights().sum(1);
  CHECK(relative_error(found.flux.select(1, 0), expected) < 1e-12);
  CHECK(relative_error(found.error.select(1, 0), data.weights().sum(1).rsqrt()) < 1e-12);
}

TEST_CASE("sources that cannot be told apart, or are none, are refused", "[analysis][sources][quick]") {
  const auto data = observed_sources(true, 1, 5);
  CHECK_THROWS_AS(source_fluxes(data, {}), ValueError);
  CHECK_THROWS_WITH(source_fluxes(data, {flux_sources[0], flux_sources[1], flux_sources[0]}), ContainsSubstring("told apart"));
  auto wide = flux_sources[1];
  wide.size = 1e4;
  CHECK_THROWS_WITH(source_fluxes(data, {wide}), ContainsSubstring("resolved out"));
}
