#include "catch.h"

#include <cmath>
#include <utility>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/likelihoods/prediction.h>
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
  const auto [samples, refits, growth, flux_seen] =
      Bootstrap(model.ptr(), Objective(likelihood, boot_terms()), options).sample(noise);
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

  // chi^2 of each channel is least where what data still hold is added, and no width of them adds more flux.
  REQUIRE(growth.share.sizes() == std::vector<std::int64_t>{boot_channels});
  CHECK_FALSE(flux_seen.defined());
  const auto chi_squared = [&](const Tensor& sky) {
    auto gradient = torch::empty_like(sky);
    return likelihood->channel_values_and_gradient(sky, gradient, Accumulate::overwrite);
  };
  auto slope = torch::empty_like(fitted);  // 2 (T x - b)
  likelihood->value_and_gradient(fitted, slope, Accumulate::overwrite);
  auto grown = torch::empty_like(fitted);
  for (std::int64_t c = 0; c < boot_channels; ++c) grown[c].copy_(growth.of_channel(c, fitted[c], boot_grid));
  const auto least = chi_squared(fitted + grown);
  for (const double part : {0.99, 1.01}) CHECK((chi_squared(fitted + part * grown) > least).all().item<bool>());
  for (const double width : growth_widths(boot_grid)) {
    const auto smoothed = smoothed_to(fitted, boot_grid, width);
    const auto moved = normal.apply(smoothed);
    const Tensor curvature = (smoothed * moved).sum({1, 2});
    const Tensor share = -(smoothed * slope).sum({1, 2}) / (2 * curvature);
    const Tensor flux = share * smoothed.sum({1, 2});
    for (std::int64_t c = 0; c < boot_channels; ++c) {
      const bool is_chosen = growth.width[c].item<double>() == width;
      if (is_chosen) CHECK(growth.share[c].item<double>() == Approx(share[c].item<double>()).epsilon(1e-2));
      const bool counts = width == 0 || std::abs(share[c].item<double>()) > 2 * factor / std::sqrt(curvature[c].item<double>());
      if (counts) CHECK(std::abs(flux[c].item<double>()) < 1.01 * std::abs(grown[c].sum().item<double>()));
    }
  }
}

TEST_CASE("data hold light around an image that priors have taken away", "[uncertainty]") {
  // A faint halo around a bright point, seen by baselines of all lengths without noise: sparsity leaves the point alone.
  const GridCoords grid(0.05, 48);
  const auto radius = (grid.sky_x().square() + grid.sky_y().square()).sqrt().to(torch::kFloat64);
  auto sky = (0.02 * at::exp(-(radius / 0.3).square())).expand({48, 48}).clone();
  sky[24][24] += 1;
  const auto scattered = random_visibilities(grid, 1, 7);
  const auto channels = ChannelMap::cube(1);
  const auto model = losses::predicted_visibilities(grid, sky.unsqueeze(0), scattered, channels);
  const Visibilities data(scattered.baselines(), model, 1e6 * torch::ones_like(scattered.weights()));
  GriddedNet net(GriddedNetOptions(grid)
                     .base_cube(torch::full({1, 48, 48}, 0.01, torch::kFloat64))
                     .dtype(torch::kFloat64)
                     .pixel_mapping(nonnegative_mapping()),
                 Smoothing::none);
  const Objective objective(ExactLikelihood(grid, data, channels).ptr(), {terms::sparsity(3e-2)});
  Trainer(net, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-6).epochs(5000)).fit();
  const auto samples = Bootstrap(net.ptr(), objective, BootstrapOptions().samples(2)).sample(DirtyNoise(grid, data, channels));
  const double missing = sky.sum().item<double>() - sky_of(net).sum().item<double>();
  const double held = samples.growth.of_channel(0, sky_of(net)[0], grid).sum().item<double>();
  const auto own = sky_of(net);
  auto slope = torch::empty_like(own);  // 2 (T x - b)
  objective.likelihood().value_and_gradient(own, slope, Accumulate::overwrite);
  const Tensor curvature = (own * NormalOperator::of(grid, data, channels).apply(own)).sum();
  const double as_it_stands = (-(own * slope).sum() / (2 * curvature) * own.sum()).item<double>();
  CAPTURE(missing, held, as_it_stands, samples.growth.width[0].item<double>());
  CHECK(samples.growth.width[0].item<double>() > 0);
  CHECK(missing > 0);
  CHECK(held > 2 * as_it_stands);
  CHECK(held > 0.3 * missing);
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
  const auto [four, refit, growth, seen] = Bootstrap(model.ptr(), objective, options).sample(noise);
  CHECK(reported == 5);
  const auto two = Bootstrap(model.ptr(), objective, BootstrapOptions().samples(2).refits(2)).sample(noise);
  CHECK(at::equal(two.images, four.narrow(0, 0, 2)));
  CHECK(at::equal(two.refits.narrow(0, 0, 1), refit));
  CHECK(growth.share.sizes() == std::vector<std::int64_t>{boot_channels});
  CHECK_FALSE(seen.defined());
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
