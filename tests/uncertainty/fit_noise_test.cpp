#include "catch.h"

#include <cmath>
#include <memory>

#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>

#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/uncertainty/fit_noise.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords noisy_grid(0.05, 32);
constexpr double sigma_of_noise = 0.05;  // of real and imaginary part

/// A Gaussian source of 1 Jy in the middle, each baseline observed `times` over with one and the same error.
/// @param promised  by how much the weights say less than that
Visibilities noisy_source(std::int64_t times, double promised) {
  const auto random = random_visibilities(noisy_grid, 1, 5);
  const auto [u, v] = random.baselines().channel(0);
  const auto source = at::exp((u.square() + v.square()) * (-12 / std::pow(random.baselines().max_abs_u(), 2)));
  const auto data = source + sigma_of_noise * std::sqrt(2.0) * normal(source.sizes(), torch::kComplexDouble, 8);
  const auto weights = torch::full({1, times * data.numel()}, std::pow(promised / sigma_of_noise, 2), torch::kFloat64);
  return {Baselines::in_lambda(u.repeat({times}), v.repeat({times})), data.repeat({times}).unsqueeze(0), weights};
}

/// A fit of such data, and what it tells of their noise.
struct NoisyFit {
  explicit NoisyFit(Visibilities visibilities, torch::Dtype dtype, PixelMapping mapping = nonnegative_mapping())
      : data(std::move(visibilities)),
        likelihood(ExactLikelihood(noisy_grid, data, ChannelMap::cube(1)).ptr()),
        unit(noise_unit(noisy_grid, data, 1, likelihood->normalizer())),
        objective(likelihood, {terms::sparsity(unit.slope), terms::tv_image(0.3 * unit.slope)}),
        model(GriddedNetOptions(noisy_grid)
                  .base_cube(torch::full({1, 32, 32}, 0.5, torch::kFloat64))
                  .dtype(dtype)
                  .pixel_mapping(std::move(mapping))) {}

  FitNoise noise() {
    const auto fit = Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-3)).fit();
    reduced = fit.loss.nll() * objective.normalizer() / static_cast<double>(data.nvis());
    return measured();
  }
  FitNoise measured(SharedErrors shared = SharedErrors::once) {
    const auto draws = [this] {
      ++asked;
      return DirtyNoise(noisy_grid, data, ChannelMap::cube(1));
    };
    return measure_fit_noise(model.ptr(), objective, unit, reduced, draws, shared);
  }

  Visibilities data;
  std::shared_ptr<Likelihood> likelihood;
  NoiseUnit unit;
  Objective objective;
  GriddedNet model;
  double reduced = 1;
  int asked = 0;
};

}  // namespace

TEMPLATE_TEST_CASE("the noise of a fit is that of the data, whatever their weights say", "[uncertainty]", float, double) {
  const double promised = GENERATE(0.5, 1.0, 2.0);
  NoisyFit fit(noisy_source(1, promised), dtype_of<TestType>());
  const auto noise = fit.noise();
  CHECK(noise.of_samples == Approx(promised).epsilon(0.08));
  CHECK(noise.shared == 1);
  CHECK(noise.factor() == noise.of_samples);
  CHECK(noise.is_off() == (promised != 1));
}

TEMPLATE_TEST_CASE("errors that visibilities share are found in the residual image", "[uncertainty]", float, double) {
  NoisyFit fit(noisy_source(4, 1), dtype_of<TestType>());
  const auto state = fit.likelihood->working_state();
  const auto noise = fit.noise();
  CHECK(fit.asked == 1);
  CHECK(noise.of_samples < 1.05);
  CHECK(noise.shared > 1.3);
  CHECK(noise.shared < 2.2);  // 2 is what a fit that follows none of it would show
  CHECK(noise.is_off());
  const auto image = fit.model->make_sky().detach().clone();
  const auto again = fit.measured();
  CHECK(again.shared == noise.shared);
  const auto twice = fit.measured(SharedErrors::twice);
  CHECK(twice.shared >= noise.shared);
  CHECK(twice.shared < 2.2);
  CHECK(torch::equal(fit.model->make_sky().detach(), image));
}

TEST_CASE("where no noise can be simulated, or none is doubted, chi^2 alone tells", "[uncertainty][quick]") {
  NoisyFit fit(noisy_source(4, 1), torch::kFloat64);
  fit.reduced = 4;
  const auto alone = measure_fit_noise(fit.model.ptr(), fit.objective, fit.unit, fit.reduced, {});
  CHECK(alone.of_samples == 2);
  CHECK(alone.shared == 1);
  NoisyFit positive(noisy_source(4, 1), torch::kFloat64, softplus_mapping());
  CHECK(positive.measured().shared == 1);  // no convex fit
  CHECK(positive.asked == 0);
  fit.reduced = 1e8;  // beside which the residual image is nothing
  CHECK(fit.measured().shared == 1);
  CHECK(fit.asked == 0);
  fit.reduced = 0;
  CHECK_FALSE(fit.measured().is_off());
  fit.reduced = NAN;
  CHECK(fit.measured().factor() == 1);
}

TEST_CASE("the noise of parts is the root mean square of theirs") {
  const auto pooled = pooled_noise({{2, 1}, {1, 3}});
  CHECK(pooled.of_samples == Approx(std::sqrt((4 + 1) / 2.0)));
  CHECK(pooled.factor() == Approx(std::sqrt((4 + 9) / 2.0)));
  CHECK(pooled_noise({{1.5, 1.2}}).shared == Approx(1.2));
  CHECK(pooled_noise({}).factor() == 1);
}

TEST_CASE("noise that is near what weights follow is not followed, and a look tells none above chi^2") {
  const FitNoise half{.of_samples = 0.5}, nearly_half{.of_samples = 0.52, .shared = 1}, twice{.of_samples = 1.5, .shared = 1.4};
  CHECK(noise_to_follow(nearly_half, half).of_samples == 0.5);
  CHECK(noise_to_follow(twice, half).shared == 1.4);
  CHECK(noise_to_follow({.of_samples = 1.1}, half).factor() == 1);
  CHECK(twice.without_misfit().factor() == 1);
  CHECK(half.without_misfit().factor() == 0.5);
  CHECK(noise_of_look(0.25).factor() == 0.5);
  CHECK(noise_of_look(0.9).factor() == 1);
  CHECK(noise_of_look(4).factor() == 1);
  CHECK(noise_of_look(0).factor() == 1);
}
