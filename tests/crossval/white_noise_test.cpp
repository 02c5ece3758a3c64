#include "catch.h"

#include <cmath>

#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/crossval/cross_validator.h>
#include <mpol_cpp/crossval/white_noise_data.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>

#include "compare.h"
#include "random.h"
#include "small_grid.h"
#include "temporary_folder.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords tiny(0.05, 8);
constexpr std::int64_t pixels = 64;
constexpr double lambda = 3e-3;

Tensor at_pixels(const Tensor& values) { return values.view({1, tiny.npix(), tiny.npix()}); }

/// Half the gradient of a function of the sky.
Tensor half_gradient(const std::function<Tensor(const Tensor&)>& function, const Tensor& sky) {
  auto own = sky.clone().requires_grad_(true);
  function(own).sum().backward();
  return 0.5 * own.grad().view({pixels});
}

Tensor half_gradient(Likelihood& likelihood, const Tensor& sky) {
  return half_gradient([&](const Tensor& own) { return likelihood.chi_squared(own); }, sky);
}

/// A symmetric matrix from its products with the unit vectors.
Tensor matrix_of(const std::function<Tensor(const Tensor&)>& product) {
  const auto units = at::eye(pixels, torch::kFloat64);
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < pixels; ++i) rows.push_back(product(at_pixels(units[i])));
  return at::stack(rows);
}

/// T of chi^2 = x^T T x - 2 b^T x + c, and T + 2 N lambda Q, where lambda R = lambda x^T Q x of tsv.
struct Ridge {
  Tensor normal, penalized, zero = at_pixels(at::zeros({pixels}, torch::kFloat64));

  explicit Ridge(Likelihood& likelihood) {
    const auto at_zero = half_gradient(likelihood, zero);
    normal = matrix_of([&](const Tensor& unit) { return half_gradient(likelihood, unit) - at_zero; });
    const auto term = terms::tsv(lambda);
    const auto value = [&](const Tensor& sky) { return term.evaluate(ModelOutput(tiny, sky, sky)); };
    const auto quadratic = matrix_of([&](const Tensor& unit) { return half_gradient(value, unit); });
    penalized = normal + 2 * likelihood.normalizer() * lambda * quadratic;
  }

  double trace_of_hat() const { return at::linalg_solve(penalized, normal).trace().item<double>(); }
  /// nu^T (T + 2 N lambda Q)^-1 nu, nu = sum w e of the perturbation.
  double answer_to(const std::vector<FoldData>& data) const {
    const auto nu = (half_gradient(*data[0].train, zero) - half_gradient(*data[1].train, zero)) / data[1].perturbation;
    return nu.dot(at::linalg_solve(penalized, nu.unsqueeze(1)).squeeze(1)).item<double>();
  }
};

/// Pixels that may have any value, so that the fit is linear in the data.
FoldModel linear_model() {
  return [](const FoldData&) -> std::shared_ptr<ImageModel> {
    const PixelMapping identity{"identity", [](const Tensor& base) { return base.clone(); },
                                [](const Tensor& sky) { return sky.clone(); }};
    return GriddedNet(GriddedNetOptions(tiny)
                          .base_cube(at::zeros({1, tiny.npix(), tiny.npix()}, torch::kFloat64))
                          .dtype(torch::kFloat64)
                          .pixel_mapping(identity))
        .ptr();
  };
}

FoldModel nonnegative_model() {
  return [](const FoldData&) -> std::shared_ptr<ImageModel> {
    return GriddedNet(GriddedNetOptions(small_grid).dtype(torch::kFloat64).pixel_mapping(nonnegative_mapping())).ptr();
  };
}

/// A disc in the middle, of the noise that the weights say times a factor.
Visibilities noisy_disc(double noise_factor = 1) {
  const auto random = random_visibilities(small_grid, 1, 21);
  const auto& uv = random.baselines();
  const auto [u, v] = uv.channel(0);
  const auto envelope = 3 * at::exp((u.square() + v.square()) * (-3 / std::pow(uv.max_abs_u(), 2)));
  const auto noise = normal({1, random.nvis()}, torch::kComplexDouble, 5) * std::sqrt(2.0) / random.weights().sqrt();
  return {uv, torch::complex(envelope, at::zeros_like(envelope)).unsqueeze(0) + noise_factor * noise, random.weights()};
}

std::vector<SearchAxis> tv_axis() { return {{"tv", 3e-3, 1, 0.01, 30, {0.01, 0.1, 0.3, 1, 3, 10}}}; }

Scan scan_of(const Visibilities& visibilities, Score score) {
  const auto train = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-4).epochs(20000);
  return CrossValidator(exact_white_noise_data(small_grid, visibilities), nonnegative_model(), {terms::tv_image(3e-3)}, tv_axis(),
                        CrossValidatorOptions().score(score).search(Search::grid()).train(train))
      .run();
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("degrees of freedom of a linear fit are the trace of its hat matrix", "[crossval]",
                       ((bool gridded), gridded), false, true) {
  const auto visibilities = random_visibilities(tiny, 1, 31);
  const auto data_of = [&](std::uint64_t seed) {
    const auto how = WhiteNoiseOptions().seed(seed);
    if (!gridded) return exact_white_noise_data(tiny, visibilities, how);
    return white_noise_data(
        tiny, visibilities, [](const Visibilities&, const GriddedDataset& cells) { return GriddedLikelihood(cells).ptr(); }, how);
  };
  const auto data = data_of(0);
  const Ridge ridge(*data[0].train);
  // The draw that the search takes: to rounding.
  const auto train = TrainOptions().optimizer(OptimizerKind::lbfgs).epochs(400);
  const auto scan = CrossValidator(data, linear_model(), {terms::tsv(lambda)}, {{"tsv", lambda, 1, 0.01, 30, {}}},
                                   CrossValidatorOptions().score(Score::sure).search(Search::compass(0.5, 1)).train(train))
                        .run();
  REQUIRE(scan.points.size() == 1);
  const auto& point = scan.points[0];
  CHECK(point.degrees_of_freedom == Approx(ridge.answer_to(data)).epsilon(1e-6));
  CHECK(scan.fits == 2);
  REQUIRE(point.folds.size() == 1);
  const auto& fit = point.folds[0];
  CHECK(fit.samples == static_cast<double>(data[0].train->samples()));
  CHECK(fit.train == Approx(fit.chi_squared / (2 * fit.samples)));
  CHECK(point.score() == Approx((fit.chi_squared + 2 * point.degrees_of_freedom) / (2 * fit.samples)));
  // The mean of many draws: the trace.
  constexpr int draws = 200;
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double answer = ridge.answer_to(data_of(100 + static_cast<std::uint64_t>(i)));
    sum += answer, squares += answer * answer;
  }
  const double mean = sum / draws, deviation = std::sqrt(squares / draws - mean * mean), trace = ridge.trace_of_hat();
  CAPTURE(trace, mean, deviation);
  CHECK(std::abs(mean - trace) < 4 * deviation / std::sqrt(draws));
  CHECK(trace > 5);  // neither nothing nor everything is fitted
  CHECK(trace < pixels - 5);
}

TEST_CASE("SURE and GCV choose as data that nobody has seen", "[crossval]") {
  const auto visibilities = noisy_disc();
  const auto sure = scan_of(visibilities, Score::sure), gcv = scan_of(visibilities, Score::gcv);
  REQUIRE(sure.points.size() == 6);
  CHECK(sure.folds_kind == "white noise");
  // Other noise on the same sky: chi^2 of the fits, which have not seen it.
  const auto noise = normal({1, visibilities.nvis()}, torch::kComplexDouble, 6) * std::sqrt(2.0) / visibilities.weights().sqrt();
  const auto [u, v] = visibilities.baselines().channel(0);
  const auto largest = visibilities.baselines().max_abs_u();
  const auto sky = 3 * at::exp((u.square() + v.square()) * (-3 / (largest * largest)));
  const Visibilities fresh(visibilities.baselines(), torch::complex(sky, at::zeros_like(sky)).unsqueeze(0) + noise,
                           visibilities.weights());
  ExactLikelihood unseen(small_grid, fresh, ChannelMap::cube(1));
  std::size_t best = 0;
  double least = 1e30, before = 1e30;
  for (std::size_t i = 0; i < sure.points.size(); ++i) {
    const auto& point = sure.points[i];
    const Tensor image = point.image.to(torch::kFloat64).unsqueeze(0);
    const double chi_squared = unseen->chi_squared(image).item<double>();
    const double expected = chi_squared / (2 * point.folds[0].samples);
    CAPTURE(i, point.degrees_of_freedom, expected);
    CHECK(point.score() == Approx(expected).margin(0.08));  // two draws of 800 complex numbers
    CHECK(gcv.points[i].degrees_of_freedom == point.degrees_of_freedom);
    CHECK(point.degrees_of_freedom < before + 3);  // the stronger the prior, the less freedom
    before = point.degrees_of_freedom;
    if (expected < least) least = expected, best = i;
  }
  CHECK(sure.points[sure.chosen].score() <= sure.points[best].score());
  CHECK(std::abs(static_cast<int>(sure.chosen) - static_cast<int>(best)) <= 1);
  CHECK(std::abs(static_cast<int>(gcv.chosen) - static_cast<int>(best)) <= 1);
  // Weights that are wrong by one factor: GCV does not notice, SURE takes noise for sky.
  const auto louder = noisy_disc(2);
  const Visibilities wrong(louder.baselines(), louder.data(), louder.weights());
  const auto misled = scan_of(wrong, Score::sure), steady = scan_of(wrong, Score::gcv);
  CHECK(misled.best().c[0] < steady.best().c[0]);
}

TEST_CASE("a search with SURE that is interrupted goes on to the same bits", "[crossval]") {
  const TemporaryFolder scratch;
  const auto data = exact_white_noise_data(small_grid, noisy_disc());
  const auto run = [&](CrossValidatorOptions how) {
    return CrossValidator(data, nonnegative_model(), {terms::tv_image(3e-3)}, tv_axis(),
                          how.score(Score::sure).search(Search::grid()))
        .run();
  };
  const auto whole = run({});
  std::int64_t polls = 0;
  auto how = CrossValidatorOptions().state(scratch / "scan.safetensors");
  auto train = how.train();
  how.train(train.interrupted([&] { return ++polls > 1200; }));
  int interruptions = 0;
  auto scan = run(how);
  while (scan.interrupted && interruptions < 40) {
    ++interruptions;
    polls = 0;
    scan = run(how);
  }
  CHECK(interruptions > 0);
  CHECK(scan.table().rows == whole.table().rows);
  CHECK(scan.table().names.back() == "degrees_of_freedom");
  CHECK(scan.chosen == whole.chosen);
}

TEST_CASE("data of one kind of score are refused by the other", "[crossval][quick]") {
  const auto visibilities = noisy_disc();
  const auto white = exact_white_noise_data(small_grid, visibilities);
  const auto folds =
      exact_fold_data(small_grid, visibilities, Folds::random_cells(small_grid, visibilities, FoldOptions().folds(2)));
  const auto made = [&](const std::vector<FoldData>& data, Score score) {
    return CrossValidator(data, nonnegative_model(), {terms::tv_image(3e-3)}, tv_axis(), CrossValidatorOptions().score(score));
  };
  CHECK_THROWS_AS(made(white, Score::folds), ValueError);
  CHECK_THROWS_AS(made(folds, Score::sure), ValueError);
  CHECK_THROWS_AS(made({white[1], white[0]}, Score::gcv), ValueError);
  CHECK_NOTHROW(made(white, Score::gcv));
  CHECK_THROWS_AS(exact_white_noise_data(small_grid, visibilities, WhiteNoiseOptions().perturbation(0)), ValueError);
}
