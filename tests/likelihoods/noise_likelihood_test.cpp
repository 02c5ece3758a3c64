#include "catch.h"

#include <cmath>

#include <ATen/ops/complex.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords noise_grid(0.05, 20);

Tensor noise_sky(std::int64_t nchan, std::uint64_t seed = 3) { return random_image(noise_grid, nchan, torch::kFloat64, seed); }

/// Visibilities of an image with Gaussian noise of which some, drawn at random, is ten times what the weight says.
Visibilities noisy_visibilities(std::int64_t nchan, std::int64_t nvis, double outliers = 0) {
  const double longest = 0.8 * noise_grid.max_uv();
  const auto spread = [&](std::uint64_t seed) { return (2 * uniform({nchan, nvis}, torch::kFloat64, seed) - 1) * longest; };
  const auto baselines = Baselines::in_lambda(spread(1), spread(2));
  const auto weights = uniform({nchan, nvis}, torch::kFloat64, 4) * 400 + 100;
  const auto noise = normal({nchan, nvis}, torch::kComplexDouble, 5) * std::sqrt(2.0) / weights.sqrt();
  const auto factor = 1 + 9 * (uniform({nchan, nvis}, torch::kFloat64, 6) < outliers).to(torch::kFloat64);
  return {baselines, direct_visibilities(noise_sky(nchan), noise_grid, baselines, nchan) + noise * factor, weights};
}

NoiseLikelihood likelihood_of(const NoiseModel& noise, const Visibilities& data, const ChannelMap& channels) {
  return NoiseLikelihood(noise_grid, data, channels, noise, NufftOptions{1e-12});
}

/// -2 ln L by its formula, from direct sums.
double by_formula(const NoiseModel& noise, const Tensor& sky, const Visibilities& data) {
  const auto model = direct_visibilities(sky, noise_grid, data.baselines(), data.nchan());
  double sum = 0;
  for (std::int64_t c = 0; c < data.nchan(); ++c) {
    for (std::int64_t i = 0; i < data.nvis(); ++i) {
      const auto v = model[c][i].item<c10::complex<double>>(), d = data.data()[c][i].item<c10::complex<double>>();
      const double w = data.weights()[c][i].item<double>(), r = std::sqrt(w) * std::abs(v - d);
      if (noise.kind == NoiseModel::Kind::student) sum += (noise.parameter + 2) * std::log(1 + r * r / noise.parameter);
      else if (noise.kind == NoiseModel::Kind::amplitude) sum += w * std::pow(std::abs(v) - std::abs(d), 2);
      else if (noise.kind == NoiseModel::Kind::huber && r > noise.parameter)
        sum += 2 * noise.parameter * r - noise.parameter * noise.parameter;
      else sum += r * r;
    }
  }
  return sum;
}

const NoiseModel noise_models[] = {NoiseModel::gaussian(), NoiseModel::student(4), NoiseModel::student(0.7),
                                   NoiseModel::huber(1.5), NoiseModel::amplitude()};

}  // namespace

TEST_CASE("the likelihood of every noise is its formula, its gradient that of autograd and differences",
          "[losses][noise][quick]") {
  const auto noise = GENERATE(from_range(std::begin(noise_models), std::end(noise_models)));
  CAPTURE(to_string(noise.kind), noise.parameter);
  const auto data = noisy_visibilities(2, 60, 0.1);
  auto likelihood = likelihood_of(noise, data, ChannelMap::cube(2));
  const auto sky = noise_sky(2, 8);
  const double expected = by_formula(noise, sky, data);
  CHECK(likelihood->chi_squared(sky).item<double>() == Approx(expected).epsilon(1e-10));
  const auto by_autograd = gradient_of([&](const Tensor& x) { return likelihood->chi_squared(x); }, sky);
  CHECK(finite_difference_error([&](const Tensor& x) { return likelihood->chi_squared(x); }, sky,
                                normal(sky.sizes(), torch::kFloat64, 9)) < 1e-7);
  auto gradient = torch::full_like(sky, 7.0);
  const auto value = likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite);
  CHECK(value.scalar_type() == torch::kFloat64);
  CHECK(value.item<double>() == Approx(expected).epsilon(1e-10));
  CHECK(relative_error(gradient, by_autograd) < 1e-11);
  likelihood->value_and_gradient(sky, gradient, Accumulate::add);
  CHECK(relative_error(gradient, 2 * by_autograd) < 1e-11);
  CHECK(likelihood->samples() == 120);

  const auto single = sky.to(torch::kFloat32);
  auto single_gradient = torch::empty_like(single);
  auto rough = NoiseLikelihood(noise_grid, data, ChannelMap::cube(2), noise);
  CHECK(relative_error(rough->value_and_gradient(single, single_gradient, Accumulate::overwrite), value) < 1e-5);
  CHECK(relative_error(single_gradient, by_autograd) < 1e-5);
}

TEST_CASE("Gaussian noise, and Student's of very many degrees of freedom, is chi squared", "[losses][noise][quick]") {
  const auto data = noisy_visibilities(3, 50);
  const ChannelMap channels{{{1}, {0, 2}}};
  auto loose = LooseLikelihood(noise_grid, data, channels, NufftOptions{1e-12});
  const auto skies = uniform({2, 2, 20, 20}, torch::kFloat64, 11);
  auto expected_gradient = torch::empty_like(skies), gradient = torch::empty_like(skies);
  const auto expected = loose->value_and_gradient(skies, expected_gradient, Accumulate::overwrite);
  for (const auto& noise : {NoiseModel::gaussian(), NoiseModel::huber(1e9), NoiseModel::student(1e13)}) {
    auto likelihood = likelihood_of(noise, data, channels);
    const auto values = likelihood->value_and_gradient(skies, gradient, Accumulate::overwrite);
    CHECK(relative_error(values, expected) < 1e-8);
    CHECK(relative_error(gradient, expected_gradient) < 1e-8);
    CHECK(likelihood->normalizer() == loose->normalizer());
    CHECK(likelihood->visibilities_count() == 150);
  }
}

TEST_CASE("real and imaginary parts may have weights of their own", "[losses][noise][quick]") {
  const auto data = noisy_visibilities(3, 50, 0.1);
  const ChannelMap channels{{{1}, {0, 2}}};
  const auto imaginary = uniform({3, 50}, torch::kFloat64, 41) * 300 + 50;
  const auto sky = uniform({2, 20, 20}, torch::kFloat64, 11);
  const auto residual =
      direct_visibilities(sky.index_select(0, torch::tensor({1, 0, 1})), noise_grid, data.baselines(), 3) - data.data();
  const auto x = torch::real(residual).square() * data.weights() + torch::imag(residual).square() * imaginary;
  for (const auto& noise : {NoiseModel::gaussian(), NoiseModel::student(3)}) {
    CAPTURE(to_string(noise.kind));
    auto likelihood = NoiseLikelihood(noise_grid, data, channels, noise, NufftOptions{1e-12}, imaginary);
    const auto expected = noise.kind == NoiseModel::Kind::gaussian ? x.sum() : 5 * (x / 3).log1p().sum();
    auto gradient = torch::full_like(sky, 7.0);
    CHECK(relative_error(likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite), expected) < 1e-10);
    CHECK(relative_error(likelihood->chi_squared(sky), expected) < 1e-10);
    CHECK(relative_error(gradient, gradient_of([&](const Tensor& image) { return likelihood->chi_squared(image); }, sky)) <
          1e-11);
    CHECK(likelihood->named_buffers().contains("imaginary_weights"));
  }
  CHECK_THROWS_AS(NoiseLikelihood(noise_grid, data, channels, NoiseModel::amplitude(), NufftOptions{}, imaginary), ValueError);
  CHECK_THROWS_AS(NoiseLikelihood(noise_grid, data, channels, NoiseModel::gaussian(), NufftOptions{}, imaginary[0]), ShapeError);
  CHECK_THROWS_AS(NoiseLikelihood(noise_grid, data, channels, NoiseModel::gaussian(), NufftOptions{}, -imaginary), DataError);
}

TEST_CASE("amplitudes do not know phases", "[losses][noise][quick]") {
  const auto data = noisy_visibilities(1, 80);
  const auto turned = data.data() * at::polar(torch::ones({1, 80}, torch::kFloat64), 6 * uniform({1, 80}, torch::kFloat64, 12));
  auto likelihood = likelihood_of(NoiseModel::amplitude(), data, ChannelMap::cube(1));
  auto other = likelihood_of(NoiseModel::amplitude(), {data.baselines(), turned, data.weights()}, ChannelMap::cube(1));
  const auto sky = noise_sky(1, 8);
  CHECK(relative_error(other->chi_squared(sky), likelihood->chi_squared(sky)) < 1e-10);
  auto gradient = torch::full_like(sky, 7.0);
  likelihood->value_and_gradient(torch::zeros_like(sky), gradient, Accumulate::overwrite);
  CHECK(gradient.abs().max().item<double>() == 0);
}

TEMPLATE_TEST_CASE("likelihoods of other noise are bitwise the same for any number of threads", "[losses][noise][quick]", float,
                   double) {
  const auto data = noisy_visibilities(2, 20000);
  const auto sky = noise_sky(2, 8).to(dtype_of<TestType>());
  const auto run = [&](int threads) {
    const Threads setting(threads);
    auto likelihood = NoiseLikelihood(noise_grid, data, ChannelMap::continuum(2), NoiseModel::student(3));
    auto gradient = torch::empty_like(sky.narrow(0, 0, 1));
    const auto value = likelihood->value_and_gradient(sky.narrow(0, 0, 1), gradient, Accumulate::overwrite);
    return std::pair(value, gradient);
  };
  const auto expected = run(1);
  for (const int threads : {2, 5}) {
    const auto [value, gradient] = run(threads);
    CHECK(same(value, expected.first));
    CHECK(same(gradient, expected.second));
  }
}

TEST_CASE("Student's noise is not led astray by outliers as Gaussian noise is", "[losses][noise]") {
  const auto clean = noisy_visibilities(1, 1500), dirty = noisy_visibilities(1, 1500, 0.1);
  const auto fitted = [&](const auto& likelihood) {
    auto model = GriddedNet(GriddedNetOptions(noise_grid).dtype(torch::kFloat64));
    const auto result = Trainer(model, Objective(likelihood), TrainOptions().learning_rate(0.1).epochs(300)).fit();
    CHECK(result.step == StepKind::fused);
    return model->make_sky().detach();
  };
  const auto reference = fitted(ExactLikelihood(noise_grid, clean, ChannelMap::cube(1)));
  const auto error = [&](const Tensor& sky) { return (sky - reference).norm().item<double>(); };
  const double gaussian = error(fitted(ExactLikelihood(noise_grid, dirty, ChannelMap::cube(1))));
  CHECK(error(fitted(NoiseLikelihood(noise_grid, dirty, ChannelMap::cube(1), NoiseModel::student(4)))) < 0.6 * gaussian);
  CHECK(error(fitted(NoiseLikelihood(noise_grid, dirty, ChannelMap::cube(1), NoiseModel::huber(1.5)))) < 0.6 * gaussian);
}

TEST_CASE("noise that is none is refused", "[losses][noise][quick]") {
  for (const double value : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    CHECK_THROWS_AS(NoiseModel::student(value), ValueError);
    CHECK_THROWS_AS(NoiseModel::huber(value), ValueError);
  }
  const auto data = noisy_visibilities(1, 5);
  auto likelihood = likelihood_of(NoiseModel::student(), data, ChannelMap::cube(1));
  CHECK_THROWS_AS(likelihood->chi_squared(noise_sky(2)), ShapeError);
  CHECK_THROWS_AS(NoiseLikelihood(GridCoords(5, 20), data, ChannelMap::cube(1), NoiseModel::student()), DataError);
}
