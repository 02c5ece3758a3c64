#include "catch.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/objective/noise_unit.h>

#include "compare.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("the unit of lambda is the noise of the slope of chi squared by a pixel", "[objective][quick]") {
  const GridCoords coords(0.05, 16);
  constexpr std::int64_t nchan = 2, draws = 40;
  const auto data = random_visibilities(coords, nchan, 3);
  const auto sky = at::full({nchan, 16, 16}, 0.0, torch::kFloat64);
  std::vector<Tensor> slopes;
  double normalizer = 0;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    // Noise whose real and imaginary parts have the variance 1/w each.
    const auto draws_of_noise =
        normal(data.data().sizes(), torch::kComplexDouble, 100 + draw) * std::sqrt(2.0) / data.weights().sqrt();
    auto likelihood =
        ExactLikelihood(coords, Visibilities(data.baselines(), draws_of_noise, data.weights()), ChannelMap::cube(nchan));
    auto gradient = at::empty_like(sky);
    likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite);
    normalizer = likelihood->normalizer();
    slopes.push_back(gradient / (2 * normalizer));
  }
  const double measured = std::sqrt(at::stack(slopes).square().mean().item<double>());
  const auto noise = noise_unit(coords, data, nchan, normalizer);
  CHECK(noise.slope == Approx(measured).epsilon(0.02));
  CHECK(noise_unit(coords, data, nchan, 2 * normalizer).slope == Approx(noise.slope / 2));
  CHECK_THROWS_AS(noise_unit(coords, data, nchan, 0), ValueError);

  // The curvature by a pixel: of a quadratic form, twice what it adds.
  auto likelihood = ExactLikelihood(coords, data, ChannelMap::cube(nchan));
  auto pixel = at::full({nchan, 16, 16}, 0.0, torch::kFloat64);
  const double empty = likelihood->chi_squared(pixel).item<double>();
  auto gradient = at::empty_like(pixel);
  likelihood->value_and_gradient(pixel, gradient, Accumulate::overwrite);
  double added = 0;
  for (std::int64_t channel = 0; channel < nchan; ++channel) {
    pixel.zero_();
    pixel[channel][5][9] = 1;
    added += likelihood->chi_squared(pixel).item<double>() - empty - gradient[channel][5][9].item<double>();
  }
  CHECK(noise.curvature == Approx(2 * added / nchan / (2 * normalizer)));
}

TEST_CASE("each term's lambda has a unit by its degree", "[objective][quick]") {
  const GridCoords coords(0.05, 16);
  const NoiseUnit noise{.slope = 0.02, .curvature = 0.3};
  CHECK(lambda_unit(terms::sparsity(7), noise, coords) == 0.02);
  CHECK(lambda_unit(terms::tv_image(1), noise, coords) == 0.02);
  CHECK(lambda_unit(terms::tv_channel(1), noise, coords) == 0.02);
  CHECK(lambda_unit(terms::entropy(1, 1e-3, 5), noise, coords) == Approx(0.1));
  const NoiseUnit of_cube{.slope = 0.02, .curvature = 0.3, .nchan = 9};
  CHECK(lambda_unit(terms::group_sparsity(1), of_cube, coords) == Approx(0.06));  // the norm of nine channels of noise
  CHECK(lambda_unit(terms::group_sparsity(1), noise, coords) == lambda_unit(terms::sparsity(1), noise, coords));
  // A term of degree two with this weight curves as the data do.
  for (const auto& term : {terms::tsv(1), terms::psd(1, 0.06), terms::spectral_smoothness(1)}) {
    const double unit = lambda_unit(term, noise, coords).value();
    auto sky = at::full({term.kind() == TermKind::spectral_smoothness ? 7 : 1, 16, 16}, 0.0, torch::kFloat64);
    sky[sky.size(0) / 2][4][7] = 1e-3;
    const double value = unit * term.evaluate(ModelOutput(coords, {}, sky)).item<double>();
    CAPTURE(term.name());
    CHECK(2 * value / 1e-6 == Approx(noise.curvature).epsilon(1e-9));
  }
  CHECK_FALSE(lambda_unit(terms::edge_clamp(1), noise, coords).has_value());
  CHECK_FALSE(lambda_unit(terms::uv_sparsity(1, 1e5), noise, coords).has_value());
  CHECK_FALSE(lambda_unit(Term("own", 1,
                               [](const ModelOutput& out) {
                                 return out.sky.sum({-3, -2, -1});
                               }),
                          noise, coords)
                  .has_value());
}
