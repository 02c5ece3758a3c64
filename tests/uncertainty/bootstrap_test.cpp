#include "catch.h"

#include <cmath>
#include <utility>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/uncertainty/bootstrap.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords boot_grid(0.05, 16);
constexpr std::int64_t boot_channels = 2;

Visibilities seen_source() {
  const auto data = random_visibilities(boot_grid, boot_channels, 7);
  return {data.baselines(), data.data() * 0.3 + 1, data.weights()};
}

/// chi^2 of data whose dirty image b is another: x^T T x - 2 b^T x.
class OtherData : public Module<OtherData>, public Likelihood {
 public:
  OtherData(NormalOperator normal, Tensor dirty)
      : Likelihood(normal.coords()), normal_(std::move(normal)), dirty_(std::move(dirty)) {}
  void reset() override {}

  Tensor chi_squared(const Tensor& sky) override { return (sky * (normal_.apply(sky.detach()) - 2 * dirty_)).sum({-3, -2, -1}); }
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate) override {
    gradient.copy_(2 * (normal_.apply(sky) - dirty_));
    return chi_squared(sky);
  }
  double normalizer() const override { return static_cast<double>(normal_.occupied_cells()); }
  bool is_quadratic() const override { return true; }

 private:
  NormalOperator normal_;
  Tensor dirty_;
};

std::vector<Term> boot_terms() { return {terms::sparsity(2e-4), terms::tv_image(1e-4)}; }

/// The optimum of a likelihood with the priors, as a model.
GriddedNet optimum(std::shared_ptr<Likelihood> likelihood, Smoothing smoothing) {
  GriddedNet model(GriddedNetOptions(boot_grid)
                       .base_cube(torch::full({boot_channels, 16, 16}, 0.5, torch::kFloat64))
                       .dtype(torch::kFloat64)
                       .pixel_mapping(nonnegative_mapping()),
                   smoothing);
  Trainer(model, Objective(std::move(likelihood), boot_terms()),
          TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-9).epochs(20000))
      .fit();
  return model;
}

Tensor sky_of(GriddedNet model) {
  const torch::NoGradGuard no_grad;
  return model->make_sky().detach().clone();
}

}  // namespace

TEST_CASE("a sample is the optimum for data of the fitted image and other noise", "[uncertainty]") {
  const auto visibilities = seen_source();
  const auto channels = ChannelMap::cube(boot_channels);
  const auto normal = NormalOperator::of(boot_grid, visibilities, channels);
  auto likelihood = ExactLikelihood(normal).ptr();
  const auto smoothing = GENERATE(Smoothing::hann, Smoothing::none);
  auto model = optimum(likelihood, smoothing);
  const auto fitted = sky_of(model);
  const DirtyNoise noise(boot_grid, visibilities, channels);
  constexpr double factor = 1.5;
  const auto options =
      BootstrapOptions().samples(3).refits(2).seed(4).noise_factor(factor).tolerance(1e-9).most_iterations(20000);
  const auto [samples, refits, growth] = Bootstrap(model.ptr(), Objective(likelihood, boot_terms()), options).sample(noise);
  REQUIRE(samples.sizes() == std::vector<std::int64_t>{3, boot_channels, 16, 16});
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto dirty = normal.apply(fitted) + factor * noise.draw(4, i);
    const auto expected = sky_of(optimum(std::make_shared<OtherData>(normal, dirty), smoothing));
    CHECK(relative_error(samples[static_cast<std::int64_t>(i)], expected) < 2e-3);
    CHECK(relative_error(expected, fitted) > 0.02);
  }
  REQUIRE(refits.sizes() == std::vector<std::int64_t>{2, boot_channels, 16, 16});
  for (std::int64_t i = 0; i < 2; ++i) {
    constexpr std::uint64_t first_of_refits = std::uint64_t{1} << 32;
    const auto seen = normal.apply(samples[i].to(fitted.scalar_type()));
    const auto dirty = seen + factor * noise.draw(4, first_of_refits + static_cast<std::uint64_t>(i));
    CHECK(relative_error(refits[i], sky_of(optimum(std::make_shared<OtherData>(normal, dirty), smoothing))) < 2e-3);
    CHECK(relative_error(refits[i], samples[i]) > 0.02);
  }
  CHECK(at::equal(sky_of(model), fitted));

  // chi^2 of each channel is least of all multiples of its image for that which has grown.
  REQUIRE(growth.sizes() == std::vector<std::int64_t>{boot_channels});
  const auto chi_squared = [&](const Tensor& times) {
    auto gradient = torch::empty_like(fitted);
    return likelihood->channel_values_and_gradient(fitted * times.view({-1, 1, 1}), gradient, Accumulate::overwrite);
  };
  const auto least = chi_squared(1 + growth);
  for (const double step : {-1e-3, 1e-3}) CHECK((chi_squared(1 + growth + step) > least).all().item<bool>());
  CHECK(growth.min().item<double>() > 0);  // which the priors have kept back
}

TEMPLATE_TEST_CASE("samples are the same each time, whatever their number", "[uncertainty][quick]", float, double) {
  const auto visibilities = seen_source();
  const auto channels = ChannelMap::cube(boot_channels);
  const auto likelihood = ExactLikelihood(boot_grid, visibilities, channels).ptr();
  GriddedNet model(GriddedNetOptions(boot_grid)
                       .base_cube(torch::full({boot_channels, 16, 16}, 0.5, dtype_of<TestType>()))
                       .dtype(dtype_of<TestType>())
                       .pixel_mapping(nonnegative_mapping()));
  Objective objective(likelihood, boot_terms());
  Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-3)).fit();
  const DirtyNoise noise(boot_grid, visibilities, channels);
  std::int64_t reported = 0;
  const auto options =
      BootstrapOptions().samples(4).refits(1).on_sample([&](std::int64_t number) { CHECK(number == reported++); });
  const auto [four, refit, growth] = Bootstrap(model.ptr(), objective, options).sample(noise);
  CHECK(reported == 5);
  const auto two = Bootstrap(model.ptr(), objective, BootstrapOptions().samples(2).refits(2)).sample(noise);
  CHECK(at::equal(two.images, four.narrow(0, 0, 2)));
  CHECK(at::equal(two.refits.narrow(0, 0, 1), refit));
  CHECK(growth.sizes() == std::vector<std::int64_t>{boot_channels});
  CHECK(four.min().template item<double>() >= 0);
  CHECK_FALSE(at::equal(four[0], four[1]));
}

TEST_CASE("errors of fits that are not convex, and options without meaning, are refused", "[uncertainty][quick]") {
  const auto visibilities = seen_source();
  const auto channels = ChannelMap::cube(boot_channels);
  const Objective objective(ExactLikelihood(boot_grid, visibilities, channels).ptr(), boot_terms());
  const auto base = torch::full({boot_channels, 16, 16}, 0.5, torch::kFloat64);
  const auto with = [&](const Tensor& pixels) {
    return GriddedNet(GriddedNetOptions(boot_grid).base_cube(pixels).pixel_mapping(nonnegative_mapping())).ptr();
  };
  CHECK_THROWS_WITH(Bootstrap(GriddedNet(GriddedNetOptions(boot_grid).nchan(boot_channels)).ptr(), objective),
                    ContainsSubstring("cannot be sampled"));
  CHECK_THROWS_WITH(Bootstrap(with(base.expand({3, boot_channels, 16, 16}).clone()), objective), ContainsSubstring("3 problems"));
  CHECK_THROWS_AS(Bootstrap(with(base), objective, BootstrapOptions().samples(1)), ValueError);
  CHECK_THROWS_AS(Bootstrap(with(base), objective, BootstrapOptions().samples(4).refits(5)), ValueError);
  CHECK_THROWS_AS(Bootstrap(with(base), objective, BootstrapOptions().noise_factor(0)), ValueError);
  CHECK_THROWS_AS(Bootstrap(with(base), objective, BootstrapOptions().tolerance(NAN)), ValueError);
  CHECK_THROWS_AS(Bootstrap(with(base), objective, BootstrapOptions().most_iterations(3)), ValueError);
}
