#include "catch.h"

#include <functional>
#include <limits>
#include <memory>

#include <ATen/ops/arange.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/proximal/total_variation.h>
#include <mpol_cpp/sparse_coding/basis_pursuit.h>
#include <mpol_cpp/sparse_coding/circular_convolution.h>
#include <mpol_cpp/sparse_coding/convolutional_coder.h>
#include <mpol_cpp/sparse_coding/dictionary_learner.h>
#include <mpol_cpp/sparse_coding/panel_fit.h>
#include <mpol_cpp/sparse_coding/robust_pca.h>
#include <mpol_cpp/sparse_coding/tv_restoration.h>

#include "compare.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t rows = 18, columns = 15;  // odd, too

Tensor some_filters(torch::Dtype dtype, std::int64_t channels = 1) {
  const auto filters = channels == 1 ? normal({5, 4, 3}, dtype, 1) : normal({5, channels, 4, 3}, dtype, 1);
  return filters / filters.square().flatten(1).sum(-1).sqrt().reshape(channels == 1 ? std::vector<std::int64_t>{5, 1, 1}
                                                                                    : std::vector<std::int64_t>{5, 1, 1, 1});
}

template <typename Options>
Options long_run(Options options, double tolerance, std::int64_t iterations) {
  options.tolerance = tolerance;
  options.most_iterations = iterations;
  return options;
}

/// Where rho changes in every iteration residuals need not get as small as one likes.
template <typename Options>
Options with_constant_rho(Options options) {
  options.rho = 1;
  options.balance.rho = AdmmOptions::Balance::Rho::fixed;
  return options;
}

}  // namespace

TEMPLATE_TEST_CASE("convolutions have adjoints and are sums of products", "[sparse_coding][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const std::int64_t channels : {1, 3}) {
    const FilterBank bank(some_filters(dtype, channels), rows, columns);
    const auto x = normal({2, channels == 1 ? 3 : 1, 5, rows, columns}, dtype, 2);
    const auto image = bank.apply(x), other = normal(image.sizes(), dtype, 3);
    REQUIRE(image.sizes() == at::IntArrayRef{2, 3, rows, columns});
    CHECK(adjoint_error(image, other, x, bank.adjoint(other)) < tolerance<TestType>(1e-14, 1e-6));
  }
  const CircularConvolution blur(normal({3, 2}, dtype, 4), rows, columns);
  const auto x = normal({2, 1, rows, columns}, dtype, 5), y = normal({2, 1, rows, columns}, dtype, 6);
  CHECK(adjoint_error(blur.apply(x), y, x, blur.adjoint(y)) < tolerance<TestType>(1e-14, 1e-6));
  auto spike = at::zeros({1, rows, columns}, x.options());
  spike[0][2][14] = 1;
  const auto kernel = normal({3, 2}, dtype, 4);
  const auto moved = blur.apply(spike)[0];
  CHECK(relative_error(moved[3][14], kernel[1][0]) < 1e-5);
  CHECK(relative_error(moved[4][0], kernel[2][1]) < 1e-5);  // around the edge
  const auto differences = ImageDifferences(Boundary::periodic);
  const auto twice =
      at::fft_irfft2(at::fft_rfft2(x) * squared_differences(rows, columns, x.options()), at::IntArrayRef{rows, columns});
  CHECK(relative_error(twice, differences.adjoint(differences.apply(x))) < tolerance<TestType>(1e-13, 1e-5));
}

TEMPLATE_TEST_CASE("a filter bank's fit is where the gradient vanishes", "[sparse_coding][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const std::int64_t channels : {1, 3}) {
    const FilterBank bank(some_filters(dtype, channels), rows, columns);
    const auto start = normal({2, channels == 1 ? 3 : 1, 5, rows, columns}, dtype, 2);
    const auto image = normal({2, 3, rows, columns}, dtype, 3);
    auto w = at::fft_rfft2(start).contiguous();
    const auto delta = uniform({2, 1, 1, 1}, dtype, 4) + 0.2;
    bank.fit(w, at::fft_rfft2(image), delta);
    const auto x = at::fft_irfft2(w, at::IntArrayRef{rows, columns});
    const auto gradient = bank.adjoint(bank.apply(x) - image) + delta.unsqueeze(-3) * (x - start);
    CHECK(gradient.abs().max().template item<double>() < tolerance<TestType>(1e-12, 2e-4));
  }
}

TEMPLATE_TEST_CASE("the fit by panels is that by LibTorch's transforms, on any number of threads", "[sparse_coding][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto filters = some_filters(dtype);
  CHECK_FALSE(PanelFit::suits(filters, rows, columns));
  CHECK_FALSE(PanelFit::suits(some_filters(dtype, 3), 16, 16));
  for (const std::int64_t npix : {16, 36, 50}) {
    CAPTURE(npix);
    REQUIRE(PanelFit::suits(filters, npix, npix));
    const auto v = normal({2, 5, npix, npix}, dtype, 2), images = normal({2, npix, npix}, dtype, 3);
    const FilterBank bank(filters, npix, npix);
    auto w = at::fft_rfft2(v).contiguous();
    bank.fit(w, at::fft_rfft2(images), at::tensor({0.3, 2.0}, dtype).view({2, 1, 1}));
    PanelFit panels(filters, npix);
    const auto x = panels.fit(v, images, {0.3, 2.0});
    CHECK(relative_error(x, at::fft_irfft2(w, at::IntArrayRef{npix, npix})) < tolerance<TestType>(1e-13, 1e-5));
    CHECK(relative_error(panels.apply(v), bank.apply(v)) < tolerance<TestType>(1e-13, 1e-5));
    CHECK(relative_error(panels.adjoint(images), bank.adjoint(images)) < tolerance<TestType>(1e-13, 1e-5));
    const Threads one(1);
    CHECK(same(panels.fit(v, images, {0.3, 2.0}), x));
  }
}

TEST_CASE("codes fulfil the conditions of their optimum", "[sparse_coding][quick]") {
  const auto image = normal({1, rows, columns}, torch::kFloat64, 7);
  auto options = with_constant_rho(long_run(ConvolutionalCodingOptions(0.3), 1e-9, 3000));
  ConvolutionalCoder coder(some_filters(torch::kFloat64), image, options);
  CHECK(coder.solve().converged);
  const auto slope = coder.bank().adjoint(image - coder.reconstruction()) / 0.3;
  CHECK(slope.abs().max().item<double>() < 1 + 1e-6);
  CHECK(((slope - coder.coefficients().sign()) * (coder.coefficients() != 0)).abs().max().item<double>() < 1e-5);
  CHECK((coder.coefficients() == 0).sum().item<std::int64_t>() > rows * columns);

  const auto dictionary = normal({12, 20}, torch::kFloat64, 8), signals = normal({2, 12, 4}, torch::kFloat64, 9);
  const auto pursuit = basis_pursuit(dictionary, signals, long_run(BasisPursuitOptions(0.5), 1e-10, 5000));
  CHECK(pursuit->solve().converged);
  const auto x = pursuit->auxiliary().squeeze(-3);
  const auto of_atoms = dictionary.t().matmul(signals - dictionary.matmul(x)) / 0.5;
  CHECK(of_atoms.abs().max().item<double>() < 1 + 1e-6);
  CHECK(((of_atoms - x.sign()) * (x != 0)).abs().max().item<double>() < 1e-5);
}

TEST_CASE("denoising ends where the proximal map of total variation does", "[sparse_coding][quick]") {
  const auto image = normal({2, 3, rows, columns}, torch::kFloat64, 10);
  for (const auto variation : {Variation::isotropic, Variation::anisotropic, Variation::across_channels}) {
    auto options = long_run(TvRestorationOptions(0.3), 1e-8, 4000);
    options.variation = variation;
    const auto solver = tv_denoiser(image, options);
    solver->solve();
    TotalVariationOptions own;
    own.weight = 0.3;
    own.variation = variation;
    own.tolerance = 1e-12;
    own.most_passes = 5000;
    CHECK(relative_error(solver->solution(), TotalVariation(own).apply(image, 1)) < 1e-4);
  }
}

TEST_CASE("what a mask hides does not matter", "[sparse_coding][quick]") {
  const auto filters = some_filters(torch::kFloat64, 3);
  const auto image = normal({3, rows, columns}, torch::kFloat64, 11);
  const auto mask = (uniform({rows, columns}, torch::kFloat64, 12) > 0.3).to(torch::kFloat64);
  auto options = long_run(ConvolutionalCodingOptions(0.2), 0, 150);
  options = with_constant_rho(options);
  options.mask = mask;
  ConvolutionalCoder coder(filters, image * mask, options), other(filters, image * mask + 7 * (1 - mask), options);
  const double value = coder.solve().objective[0];
  CHECK(other.solve().objective[0] == Approx(value).epsilon(1e-2));
  // With a mask of ones it is the problem without.
  options.mask = at::ones({rows, columns}, torch::kFloat64);
  options.most_iterations = 600;
  ConvolutionalCoder all(filters, image, options);
  const auto plain = with_constant_rho(long_run(ConvolutionalCodingOptions(0.2), 1e-8, 2000));
  ConvolutionalCoder without(filters, image, plain);
  CHECK(all.solve().objective[0] == Approx(without.solve().objective[0]).epsilon(1e-3));
}

TEMPLATE_TEST_CASE("problems go where they go alone, and go on bit for bit", "[sparse_coding][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto filters = some_filters(dtype);
  const auto images = normal({3, 1, rows, columns}, dtype, 13) * at::arange(1, 4, torch::TensorOptions(dtype)).view({3, 1, 1, 1});
  const auto options = long_run(ConvolutionalCodingOptions(0.2), 0, 25);
  ConvolutionalCoder together(filters, images, options);
  together.solve();
  for (std::int64_t i = 0; i < 3; ++i) {
    ConvolutionalCoder alone(filters, images[i], options);
    alone.solve();
    CHECK(relative_error(together.coefficients()[i], alone.coefficients()) < tolerance<TestType>(1e-11, 1e-4));
  }
  ConvolutionalCoder half(filters, images, long_run(options, 0, 10)), rest(filters, images, options);
  half.solve();
  rest.solver().load_state(half.solver().state());
  rest.solve();
  CHECK(same(rest.coefficients(), together.coefficients()));

  DictionaryLearningOptions learning(0.2);
  learning.coding.most_iterations = 10;
  learning.mean = DictionaryLearningOptions::Mean::remove;
  DictionaryLearner whole(filters, learning), first(filters, learning), second(filters, learning);
  whole.learn(images);
  whole.learn(images[1]);
  first.learn(images);
  second.load_state(first.state());
  second.learn(images[1]);
  CHECK(second.images_seen() == 2);
  CHECK(same(second.filters(), whole.filters()));
  CHECK(relative_error(whole.filters().square().sum({-2, -1}), at::ones({5}, filters.options())) < 1e-5);
  CHECK(whole.filters().mean({-2, -1}).abs().max().template item<double>() < 1e-6);
  CHECK_THROWS_AS(second.load_state({}), FileError);
}

TEST_CASE("a learned dictionary codes better than the one that it began with", "[sparse_coding][quick]") {
  const auto truth = some_filters(torch::kFloat64);
  const auto filters = normal({5, 4, 3}, torch::kFloat64, 14);
  DictionaryLearner learner(filters, DictionaryLearningOptions(0.05));
  const auto image = [&](std::uint64_t seed) {
    const auto sparse = normal({1, 5, 24, 24}, torch::kFloat64, seed) *
                        (uniform({1, 5, 24, 24}, torch::kFloat64, seed + 1) < 0.02).to(torch::kFloat64);
    return FilterBank(truth, 24, 24).apply(sparse);
  };
  const auto cost = [&](const Tensor& own) {
    return ConvolutionalCoder(own, image(99), ConvolutionalCodingOptions(0.05)).solve().objective[0];
  };
  const double before = cost(learner.filters());
  for (std::uint64_t k = 0; k < 12; ++k) learner.learn(image(200 + 2 * k));
  CHECK(cost(learner.filters()) < 0.9 * before);
}

TEST_CASE("robust principal components find what was added up", "[sparse_coding][quick]") {
  const auto low = normal({2, 30, 2}, torch::kFloat64, 15).matmul(normal({2, 2, 40}, torch::kFloat64, 16));
  const auto sparse = 5 * (uniform({2, 30, 40}, torch::kFloat64, 17) < 0.05).to(torch::kFloat64);
  const auto solver = robust_pca(low + sparse, long_run(RobustPcaOptions::for_rows(40), 1e-7, 500));
  CHECK(solver->solve().converged);
  CHECK(relative_error(low_rank(*solver), low) < 1e-2);
  CHECK(relative_error(sparse_part(*solver), sparse) < 1e-2);
}

TEST_CASE("sparse coding refuses what does not go together", "[sparse_coding][quick]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto image = normal({3, rows, columns}, torch::kFloat64, 18);
  const auto filters = some_filters(torch::kFloat64);
  for (const double lambda : {0.0, -1.0, nan}) {
    CHECK_THROWS_AS(ConvolutionalCodingOptions(lambda), ValueError);
    CHECK_THROWS_AS(BasisPursuitOptions(lambda), ValueError);
    CHECK_THROWS_AS(TvRestorationOptions(lambda), ValueError);
    CHECK_THROWS_AS(RobustPcaOptions(lambda), ValueError);
  }
  const auto coder = [&](const std::function<void(ConvolutionalCodingOptions&)>& change) {
    ConvolutionalCodingOptions options(0.1);
    change(options);
    ConvolutionalCoder(filters, image, options);
  };
  CHECK_NOTHROW(coder([](auto&) {}));
  CHECK_THROWS_AS(coder([](auto& o) { o.problem_dims = 3; }), ValueError);
  CHECK_THROWS_AS(coder([](auto& o) { o.gradient_weight = -1; }), ValueError);
  CHECK_THROWS_AS(coder([](auto& o) { o.tv_weight = -1; }), ValueError);
  CHECK_THROWS_AS(coder([](auto& o) { o.l21_weight = -1; }), ValueError);
  CHECK_THROWS_AS(coder([](auto& o) { o.l1_weights = at::ones({4}); }), ShapeError);
  CHECK_THROWS_AS(coder([](auto& o) { o.l1_weights = at::ones({5}), o.l21_weight = 1; }), ValueError);
  CHECK_THROWS_AS(coder([](auto& o) { o.mask = at::ones({rows, columns}), o.tv_weight = 1; }), ValueError);
  CHECK_THROWS_AS(ConvolutionalCoder(filters, image[0], ConvolutionalCodingOptions(1)), ShapeError);
  CHECK_THROWS_AS(ConvolutionalCoder(some_filters(torch::kFloat64, 2), image, ConvolutionalCodingOptions(1)), ShapeError);
  CHECK_THROWS_AS(FilterBank(normal({2, 20, 3}, torch::kFloat64, 1), rows, columns), ShapeError);
  CHECK_THROWS_AS(tv_deconvolver(normal({20, 3}, torch::kFloat64, 1), image, TvRestorationOptions(1)), ShapeError);
  CHECK_THROWS_AS(tv_denoiser(image[0], TvRestorationOptions(1)), ShapeError);
  TvRestorationOptions sweeps(1);
  sweeps.sweeps = 0;
  CHECK_THROWS_AS(tv_denoiser(image, sweeps), ValueError);
  CHECK_THROWS_AS(basis_pursuit(normal({7, 9}, torch::kFloat64, 1), image, BasisPursuitOptions(1)), ShapeError);
  DictionaryLearningOptions learning(0.1);
  learning.step_offset = 0;
  CHECK_THROWS_AS(DictionaryLearner(filters, learning), ValueError);
}
