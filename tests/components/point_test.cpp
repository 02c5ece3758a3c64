// Point sources beside an image.
#include "catch.h"

#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_lstsq.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/real.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/components/point_fit.h>
#include <mpol_cpp/components/point_likelihood.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords grid(0.05, 48);
constexpr double sigma = 0.1;  // of the real = of the imaginary part, Jy
constexpr std::int64_t nvis = 3000;

/// What a Gaussian of 1 Jy, 0.6" wide, shows, with noise of each channel; 5 pixels to the finest fringe.
Visibilities gaussian_with_noise(std::int64_t nchan, double flux = 1) {
  const auto radius = uniform({nvis}, torch::kFloat64, 1).sqrt() * (0.2 / (0.05 * units::arcsec));
  const auto angle = uniform({nvis}, torch::kFloat64, 2) * (2 * units::pi);
  const auto u = (radius * angle.cos()).expand({nchan, nvis}), v = (radius * angle.sin()).expand({nchan, nvis});
  const double width = 0.6 / std::sqrt(8 * std::log(2.0)) * units::arcsec;
  const auto source = flux * (radius.square() * (-2 * std::pow(units::pi * width, 2))).exp();
  const auto noise = sigma * std::sqrt(2.0) * normal({nchan, nvis}, torch::kComplexDouble, 3);
  return {Baselines::in_lambda(u.contiguous(), v.contiguous()), noise + source,
          at::full({nchan, nvis}, 1 / (sigma * sigma), torch::kFloat64)};
}

Visibilities with_points(const Visibilities& visibilities, std::vector<PointComponent> sources) {
  for (auto& source : sources)
    for (auto& flux : source.flux) flux = -flux;
  return without_points(visibilities, ChannelMap::cube(visibilities.nchan()), sources);
}

/// The flux of a point of so many times its noise, of one channel.
double flux_of(double signal) { return signal * sigma / std::sqrt(static_cast<double>(nvis)); }

/// Images by POGM at the usual weights of bright data.
class TestImager final : public PointImager {
 public:
  explicit TestImager(std::int64_t nchan, std::int64_t images = 1000, const PixelMapping& mapping = nonnegative_mapping())
      : model_(options_of(nchan, mapping)), images_(images) {}

  Tensor image_of(const Visibilities& rest, const Beside& beside) override {
    if (images_-- == 0) return {};
    const auto channels = ChannelMap::cube(rest.nchan());
    const auto likelihood = beside(ExactLikelihood(grid, rest, channels).ptr());
    const double unit = noise_unit(grid, rest, rest.nchan(), likelihood->normalizer()).slope;
    const Objective objective(likelihood, {terms::sparsity(unit), terms::tv_image(0.3 * unit), terms::tv_slope(0.5 * unit)});
    Trainer(model_, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-3).epochs(4000)).fit();
    const torch::NoGradGuard no_grad;
    return model_->make_sky().detach().clone();
  }
  NamedTensors state() const override { return {{"base", model_->base().detach()}}; }
  void load_state(const NamedTensors& state) override {
    const torch::NoGradGuard no_grad;
    model_->base().copy_(state.at("base"));
  }

 private:
  static GriddedNetOptions options_of(std::int64_t nchan, const PixelMapping& mapping) {
    return GriddedNetOptions(grid)
        .base_cube(at::full({nchan, grid.npix(), grid.npix()}, 0.1, torch::kFloat64))
        .pixel_mapping(mapping);
  }
  GriddedNet model_;
  std::int64_t images_;  // until it is interrupted
};

PointFit fit_of(const Visibilities& visibilities, std::vector<PointComponent> start, const PointFitOptions& options) {
  TestImager imager(visibilities.nchan());
  return fit_points(grid, visibilities, ChannelMap::cube(visibilities.nchan()), std::move(start), imager, options);
}

}  // namespace

TEMPLATE_TEST_CASE("what a point source shows is taken out of data, channel by channel", "[components][quick]", float, double) {
  auto visibilities = gaussian_with_noise(2);
  visibilities.set_frequencies(torch::tensor({2e11, 2.1e11}, torch::kFloat64));
  const Visibilities own(visibilities.baselines(), visibilities.data().to(complex_dtype_of<TestType>()), visibilities.weights());
  const PointComponent source{.east = 0.31, .north = -0.2, .flux = {0.5, 2}};
  const auto rest = without_points(own, ChannelMap::cube(2), {source});
  CHECK(rest.data().scalar_type() == complex_dtype_of<TestType>());
  // A pixel of the whole flux at a grid's place is the same source.
  const PointComponent on_grid{
      .east = grid.sky_x()[30][20].item<double>(), .north = grid.sky_y()[30][20].item<double>(), .flux = {1, 3}};
  auto sky = at::zeros({2, grid.npix(), grid.npix()}, torch::kFloat64);
  sky.select(1, 30).select(1, 20).copy_(torch::tensor({1.0, 3.0}, torch::kFloat64) / grid.cell_area());
  const auto expected = losses::residual_visibilities(grid, sky, own, ChannelMap::cube(2));
  CHECK(relative_error(without_points(own, ChannelMap::cube(2), {on_grid}).data(), expected.data()) <
        tolerance<TestType>(1e-8, 1e-6));
  // A continuum image has one flux for all channels.
  const auto continuum = without_points(own, ChannelMap::continuum(2), {{.east = 0.31, .north = -0.2, .flux = {0.5}}});
  CHECK(same(continuum.data()[0], rest.data()[0]));
  CHECK_THROWS_WITH(without_points(own, ChannelMap::cube(2), {{.flux = {1}}}), ContainsSubstring("2 channels"));
}

TEMPLATE_TEST_CASE("beside point sources chi^2 is the least over their fluxes and shifts, and so is its gradient",
                   "[components][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto channels = ChannelMap::cube(2);
  const std::vector<PointComponent> sources = {{.east = 0.31, .north = -0.22, .flux = {}},
                                               {.east = -0.4, .north = 0.5, .flux = {}}};
  const auto visibilities = with_points(gaussian_with_noise(2), {{.east = 0.3, .north = -0.2, .flux = {0.5, 2}}});
  PointLikelihood likelihood(ExactLikelihood(grid, visibilities, channels).ptr(), visibilities, channels, sources);
  CHECK(likelihood->is_quadratic());
  CHECK(likelihood->name() == "exact");
  const auto sky = (uniform({3, 2, grid.npix(), grid.npix()}, torch::kFloat64, 5)).to(dtype);
  auto gradient = torch::empty_like(sky);
  const auto values = likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite);
  const double bound = tolerance<TestType>(1e-8, 2e-5);
  CHECK(relative_error(likelihood->chi_squared(sky), values) < bound);
  auto leaf = sky.clone().requires_grad_();
  likelihood->chi_squared(leaf).sum().backward();
  CHECK(relative_error(gradient, leaf.grad()) < tolerance<TestType>(1e-9, 1e-4));
  auto twice = gradient.clone();
  likelihood->value_and_gradient(sky, twice, Accumulate::add);
  CHECK(relative_error(twice, 2 * gradient) < tolerance<TestType>(1e-12, 1e-5));

  // By least squares of the samples themselves.
  const auto own = sky[1].to(torch::kFloat64);
  const auto residual = losses::residual_visibilities(grid, own, visibilities, channels);
  double chi_squared = 0;
  for (std::int64_t c = 0; c < 2; ++c) {
    const auto [u, v] = visibilities.baselines().channel(c);
    std::vector<Tensor> columns;
    for (const auto& source : sources) {
      const auto phase = point_visibilities(source, u, v);
      const auto along = [&](const Tensor& w) {
        return phase * at::complex(at::zeros_like(w), -2 * units::pi * units::arcsec * w);
      };
      columns.insert(columns.end(), {phase, along(u), along(v)});
    }
    const auto real_and_imaginary = [](const Tensor& z) { return at::cat({at::real(z), at::imag(z)}); };
    std::vector<Tensor> parts;
    parts.reserve(columns.size());
    for (const auto& column : columns) parts.push_back(real_and_imaginary(column) / sigma);
    const auto matrix = at::stack(parts, 1), data = real_and_imaginary(residual.data()[c]) / sigma;
    const auto solution = std::get<0>(at::linalg_lstsq(matrix, data.unsqueeze(1)));
    chi_squared += (data - matrix.matmul(solution).squeeze(1)).square().sum().item().toDouble();
    const auto found = likelihood->amplitudes(own)[c].flatten();
    CHECK(found[0].item().toDouble() == Approx(solution[0][0].item().toDouble()).epsilon(1e-6));
    const double unit = likelihood->shift_unit();
    CHECK(found[1].item().toDouble() * unit == Approx(solution[1][0].item().toDouble()).epsilon(1e-5).margin(1e-9));
  }
  CHECK(values[1].item().toDouble() == Approx(chi_squared).epsilon(tolerance<TestType>(1e-8, 1e-5)));
  CHECK_THROWS_WITH(PointLikelihood(ExactLikelihood(grid, visibilities, channels).ptr(), visibilities, channels,
                                    std::vector<PointComponent>{sources[0], sources[0]}),
                    ContainsSubstring("told apart"));
  CHECK_THROWS_AS(
      PointLikelihood(ExactLikelihood(grid, visibilities, channels).ptr(), visibilities, channels, std::vector<PointComponent>{}),
      ValueError);
}

TEST_CASE("a point between pixels, beside a wider source, is found with its flux and place", "[components]") {
  const PointComponent truth{.east = 0.2137, .north = -0.1114, .flux = {flux_of(1000), 0.7 * flux_of(1000)}};
  const auto visibilities = with_points(gaussian_with_noise(2), {truth});
  std::vector<std::int64_t> counts;
  const auto options = PointFitOptions().searches(true).on_round(
      [&](const PointRound& round) { counts.push_back(static_cast<std::int64_t>(round.sources.size())); });
  for (const bool given : {false, true}) {
    CAPTURE(given);
    const auto fit = given ? fit_of(visibilities, {{.east = 0.2, .north = -0.15, .flux = {}}}, PointFitOptions())
                           : fit_of(visibilities, {}, options);
    CHECK(fit.converged);
    CHECK(fit.change <= 0.1);
    REQUIRE(fit.sources.size() == 1);
    const auto& source = fit.sources.front();
    CHECK(source.place_error > 0);
    CHECK(std::hypot(source.east - truth.east, source.north - truth.north) < 3 * source.place_error);
    CHECK(source.place_error < 0.01);
    for (std::size_t c = 0; c < 2; ++c) {
      CHECK(std::abs(source.flux[c] - truth.flux[c]) < 3 * source.flux_error[c]);
      CHECK(source.flux_error[c] < 0.06 * truth.flux[c]);
    }
  }
  CHECK(counts.front() == 1);  // found in the first image
}

TEST_CASE("no point is found where none is, nor in a spot that is wider than one", "[components]") {
  CHECK(fit_of(gaussian_with_noise(1), {}, PointFitOptions().searches(true)).sources.empty());
  auto spot = gaussian_with_noise(1, 0);
  const auto [u, v] = spot.baselines().channel(0);
  const double width = 0.05 * units::arcsec;
  const auto narrow = flux_of(3000) * ((u.square() + v.square()) * (-2 * std::pow(units::pi * width, 2))).exp();
  const Visibilities resolved(spot.baselines(), spot.data() + narrow.unsqueeze(0), spot.weights());
  const auto fit = fit_of(resolved, {}, PointFitOptions().searches(true));
  CHECK(fit.converged);
  CHECK(fit.sources.empty());
}

TEST_CASE("two stars, one of them negative, are found beside each other with pixels of either sign, and none twice",
          "[components]") {
  const auto visibilities = with_points(gaussian_with_noise(1), {{.east = 0.5137, .north = 0.3114, .flux = {flux_of(2000)}},
                                                                 {.east = -0.4321, .north = -0.2345, .flux = {-flux_of(1500)}}});
  TestImager imager(1, 1000, either_sign_mapping());
  const auto fit = fit_points(grid, visibilities, ChannelMap::cube(1), {}, imager, PointFitOptions().searches(true));
  CHECK(fit.converged);
  REQUIRE(fit.sources.size() == 2);
  for (const auto& source : fit.sources) {
    const bool negative = source.flux[0] < 0;
    CHECK(std::abs(source.flux[0] - (negative ? -flux_of(1500) : flux_of(2000))) < 4 * source.flux_error[0]);
    CHECK(std::hypot(source.east - (negative ? -0.4321 : 0.5137), source.north - (negative ? -0.2345 : 0.3114)) < 0.005);
  }
  CHECK(fit.sources[0].flux[0] * fit.sources[1].flux[0] < 0);
}

TEST_CASE("a fit of point sources that was interrupted goes on to the same bits", "[components]") {
  const TemporaryFolder folder;
  const auto visibilities = with_points(gaussian_with_noise(1), {{.east = 0.2137, .north = -0.1114, .flux = {flux_of(3000)}}});
  const auto whole = fit_of(visibilities, {}, PointFitOptions().searches(true));
  const auto options = PointFitOptions().searches(true).state(folder.path() / "points.safetensors").fingerprint({"a = 1"});
  TestImager interrupted(1, 3), rest(1);
  const auto channels = ChannelMap::cube(1);
  const auto part = fit_points(grid, visibilities, channels, {}, interrupted, options);
  CHECK(part.interrupted);
  CHECK(part.rounds == 3);
  const auto end = fit_points(grid, visibilities, channels, {}, rest, options);
  CHECK(end.rounds == whole.rounds);
  REQUIRE(whole.sources.size() == 1);
  REQUIRE(end.sources.size() == 1);
  CHECK(end.sources[0].flux[0] == whole.sources[0].flux[0]);
  CHECK(end.sources[0].east == whole.sources[0].east);
  CHECK(end.sources[0].place_error == whole.sources[0].place_error);
  // With other settings it begins anew.
  TestImager other(1, 0);
  CHECK(fit_points(grid, visibilities, channels, {}, other, PointFitOptions(options).fingerprint({"a = 2"})).rounds == 0);
}

TEST_CASE("a fit of point sources refuses what makes no sense", "[components][quick]") {
  const auto visibilities = gaussian_with_noise(1);
  CHECK_THROWS_WITH(fit_of(visibilities, {}, PointFitOptions()), ContainsSubstring("none is looked for"));
  CHECK_THROWS_AS(fit_of(visibilities, {}, PointFitOptions().searches(true).rounds(0)), ValueError);
  CHECK_THROWS_AS(fit_of(visibilities, {}, PointFitOptions().searches(true).tolerance(0)), ValueError);
  CHECK_THROWS_AS(fit_of(visibilities, {}, PointFitOptions().searches(true).clear_peak(-1)), ValueError);
}
