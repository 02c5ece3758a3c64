#include "catch.h"

#include <cmath>
#include <utility>

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <torch/autograd.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "golden.h"
#include "random.h"
#include "temporary_folder.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t exact_npix = 32;
const GridCoords small_grid(0.03, exact_npix);

/// A smooth disc of 1 Jy in each channel, of 10 pixels radius.
Tensor exact_disc(std::int64_t nchan, const GridCoords& grid = small_grid) {
  const auto r = (grid.sky_x().square() + grid.sky_y().square()).sqrt() / grid.cell_size();
  const auto image = at::sigmoid((10 - r) * 0.7);
  return (image / (image.sum() * grid.cell_area())).expand({nchan, grid.npix(), grid.npix()}).contiguous();
}

/// Visibilities of the disc with noise of which each has the signal-to-noise ratio of the total flux.
Visibilities observed(std::int64_t nchan, std::int64_t nvis, double signal_to_noise, std::uint64_t seed,
                      const GridCoords& grid = small_grid) {
  const auto spread = [&](std::uint64_t s) {
    return normal({nchan, nvis}, torch::kFloat64, s).clamp(-3, 3) * (0.3 * grid.max_uv());
  };
  const auto baselines = Baselines::in_lambda(spread(seed), spread(seed + 1));
  const auto noise = normal({nchan, nvis}, torch::kComplexDouble, seed + 2) * (std::sqrt(2.0) / signal_to_noise);
  return {baselines, direct_visibilities(exact_disc(nchan, grid), grid, baselines, nchan) + noise,
          torch::full({nchan, nvis}, signal_to_noise * signal_to_noise, torch::kFloat64)};
}

double norm_difference(const Tensor& value, const Tensor& reference) {
  const auto difference = value.to(torch::kFloat64) - reference;
  return std::sqrt(inner_product(difference, difference) / inner_product(reference, reference));
}

template <typename Holder>
std::pair<Tensor, Tensor> evaluated(Holder& likelihood, const Tensor& sky) {
  auto gradient = torch::full_like(sky, 7.0);
  const auto value = likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite);
  return {value, gradient};
}

}  // namespace

TEST_CASE("the exact and the loose likelihood equal MPoL's chi squared by direct sums", "[losses][exact][quick]") {
  const Golden dataset("dataset"), golden("normal_operator");
  const Visibilities data(Baselines::in_lambda(dataset("in_uu"), dataset("in_vv")), dataset("in_data"), dataset("in_weight"));
  auto exact = ExactLikelihood(dataset_coords(), data, ChannelMap::cube(2));
  auto loose = LooseLikelihood(dataset_coords(), data, ChannelMap::cube(2), NufftOptions{1e-12});
  const auto sky = dataset("in_image_sky");
  const auto expected_gradient = packed_to_sky(golden("out_gradient_a_packed"));
  for (Likelihood* likelihood : {static_cast<Likelihood*>(exact.get()), static_cast<Likelihood*>(loose.get())}) {
    CHECK(relative_error(likelihood->chi_squared(sky), golden("out_chi2_a").sum()) < 1e-11);
    CHECK(relative_error(gradient_of([&](const Tensor& x) { return likelihood->chi_squared(x); }, sky), expected_gradient) <
          1e-11);
    CHECK(likelihood->visibilities_count() == data.nchan() * data.nvis());
  }
  CHECK(exact->normalizer() == loose->normalizer());
  const Golden gridding("gridding");
  CHECK(exact->normalizer() == gridding("out_mask_packed").sum().item<double>());
}

TEST_CASE("the exact and the loose likelihood agree for every map of channels", "[losses][exact][quick]") {
  const auto data = observed(3, 200, 10, 1);
  for (const auto& channels : {ChannelMap::cube(3), ChannelMap::continuum(3), ChannelMap{{{1}, {0, 2}}}}) {
    auto exact = ExactLikelihood(small_grid, data, channels);
    auto loose = LooseLikelihood(small_grid, data, channels, NufftOptions{1e-13});
    const auto skies =
        exact_disc(channels.nchan()) * (1 + 0.3 * normal({2, channels.nchan(), exact_npix, exact_npix}, torch::kFloat64, 5));
    const auto [value, gradient] = evaluated(exact, skies);
    const auto [loose_value, loose_gradient] = evaluated(loose, skies);
    CHECK(value.sizes() == at::IntArrayRef({2}));
    CHECK(relative_error(value, loose_value) < 1e-11);
    CHECK(relative_error(gradient, loose_gradient) < 1e-11);
    auto twice = gradient.clone();
    exact->value_and_gradient(skies, twice, Accumulate::add);
    CHECK(relative_error(twice, 2 * gradient) < 1e-13);
    loose->value_and_gradient(skies, twice, Accumulate::add);
    CHECK(relative_error(twice, 3 * gradient) < 1e-11);
  }
}

TEMPLATE_TEST_CASE("an exact likelihood whose kernels lie in files is the same, bit for bit", "[losses][exact][quick]", float,
                   double) {
  const TemporaryFolder folder;
  const auto data = observed(3, 200, 10, 71);
  const auto channels = ChannelMap::cube(3);
  auto in_memory = ExactLikelihood(small_grid, data, channels),
       in_files = ExactLikelihood(small_grid, data, channels, KernelStorage{folder.path()});
  const auto normal_operator = NormalOperator::of(small_grid, data, channels, {folder.path()});
  auto of_copy = ExactLikelihood(normal_operator);
  for (const double bright : {1.0, 1.001, 3.0}) {
    const auto sky = exact_disc(3).to(dtype_of<TestType>()) * bright;
    const auto [value, gradient] = evaluated(in_memory, sky);
    for (auto* other : {&in_files, &of_copy}) {
      const auto [own_value, own_gradient] = evaluated(*other, sky);
      CHECK(same(own_value, value));
      CHECK(same(own_gradient, gradient));
    }
  }
  CHECK(folder.count() == 0);
}

TEST_CASE("chi squared at the truth is the number of measured values", "[losses][exact][quick]") {
  const std::int64_t nvis = 20000;
  auto exact = ExactLikelihood(small_grid, observed(1, nvis, 5, 7), ChannelMap::cube(1));
  const double chi_squared = exact->chi_squared(exact_disc(1)).item<double>();
  CHECK(std::abs(chi_squared - 2 * nvis) < 5 * std::sqrt(4.0 * nvis));
}

namespace {

/// Value and gradient in float32, at several distances from the truth, are those in float64.
void check_anchored_form(const GridCoords& grid, std::int64_t nvis, double signal_to_noise) {
  auto exact = ExactLikelihood(grid, observed(1, nvis, signal_to_noise, 11, grid), ChannelMap::cube(1));
  for (const double distance : {1e-1, 1e-2, 1e-3, 1e-4, 0.0, 1e-3}) {
    const auto noise = normal({1, grid.npix(), grid.npix()}, torch::kFloat64, 15);
    const auto sky = (exact_disc(1, grid) * (1 + distance * noise)).to(torch::kFloat32);
    const auto [expected, expected_gradient] = evaluated(exact, sky.to(torch::kFloat64));
    const auto [value, gradient] = evaluated(exact, sky);
    CAPTURE(grid.npix(), signal_to_noise, distance);
    CHECK(relative_error(value, expected) < 1e-6);
    CHECK(norm_difference(gradient, expected_gradient) < 1e-6);
  }
  CHECK(exact->anchors() > 0);
}

}  // namespace

TEST_CASE("the anchored form in float32 keeps value and gradient near the optimum", "[losses][exact][quick]") {
  check_anchored_form(small_grid, 3000, GENERATE(10.0, 1e2, 1e3, 1e4));
}

TEST_CASE("the anchored form in float32 keeps value and gradient on larger grids", "[losses][exact]") {
  const std::int64_t npix = GENERATE(90, 210, 512);
  check_anchored_form(GridCoords(0.03, npix), 1000, GENERATE(10.0, 1e2, 1e3, 1e4));
}

TEST_CASE("an image channel without visibilities is no part of an exact or loose likelihood", "[losses][exact][quick]") {
  const auto data = observed(2, 200, 10, 1);
  const ChannelMap with_a_gap{{{0}, {}, {1}}};
  const auto sky = exact_disc(3) * (1 + 0.3 * normal({3, exact_npix, exact_npix}, torch::kFloat64, 5));
  const auto gap_taken_out = at::stack({sky[0], sky[2]});
  const auto check = [&](auto whole, auto without) {
    const auto [value, gradient] = evaluated(whole, sky);
    const auto [expected, expected_gradient] = evaluated(without, gap_taken_out);
    CHECK(relative_error(value, expected) < 1e-12);
    CHECK((gradient[1] == 0).all().template item<bool>());
    CHECK(relative_error(at::stack({gradient[0], gradient[2]}), expected_gradient) < 1e-12);
    CHECK(whole->normalizer() == without->normalizer());
    CHECK(relative_error(gradient_of([&](const Tensor& x) { return whole->chi_squared(x); }, sky), gradient) < 1e-12);
  };
  const auto channels = ChannelMap::cube(2);
  check(ExactLikelihood(small_grid, data, with_a_gap), ExactLikelihood(small_grid, data, channels));
  check(LooseLikelihood(small_grid, data, with_a_gap), LooseLikelihood(small_grid, data, channels));
  // Averages of cells have none for such a channel.
  const auto options = DataAveragerOptions().scatter_check(ScatterCheck::off).channel_map(with_a_gap);
  CHECK_THROWS_WITH(DataAverager(small_grid, data, options), ContainsSubstring("an image channel has no data channels"));
}

TEST_CASE("an anchor is kept while it serves", "[losses][exact][quick]") {
  auto exact = ExactLikelihood(small_grid, observed(1, 500, 100, 17), ChannelMap::cube(1));
  const auto start = exact_disc(1).to(torch::kFloat32) * 2;
  for (int i = 0; i < 20; ++i) evaluated(exact, start * (1 + 1e-3 * i));
  CHECK(exact->anchors() == 1);
}

TEMPLATE_TEST_CASE("the exact likelihood's working state makes another one its equal, bit for bit", "[losses][exact][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto data = observed(2, 500, 100, 17);
  auto first = ExactLikelihood(small_grid, data, ChannelMap::cube(2)),
       second = ExactLikelihood(small_grid, data, ChannelMap::cube(2));
  CHECK(first->working_state().empty());
  const auto sky = (exact_disc(2) * 1.5).to(dtype);
  evaluated(first, sky);
  const auto state = first->working_state();
  CHECK(state.size() == (dtype == torch::kFloat32 ? 1U : 0U));
  evaluated(second, sky * TestType(0.4));  // an anchor elsewhere
  second->load_working_state(state);
  const auto later = sky * TestType(1.001);
  const auto [value, gradient] = evaluated(first, later);
  const auto [same_value, same_gradient] = evaluated(second, later);
  CHECK(same(value, same_value));
  CHECK(same(gradient, same_gradient));
  CHECK_THROWS_AS(second->load_working_state({{"anchors", torch::zeros({3, exact_npix, exact_npix})}}), FileError);
  CHECK_THROWS_AS(second->load_working_state({{"other", torch::zeros({2, exact_npix, exact_npix})}}), FileError);
}

TEST_CASE("problems of the exact likelihood are independent in float32", "[losses][exact][quick]") {
  auto exact = ExactLikelihood(small_grid, observed(2, 300, 50, 19), ChannelMap::cube(2));
  const auto skies =
      (exact_disc(2) * (1 + 0.1 * normal({3, 2, exact_npix, exact_npix}, torch::kFloat64, 23))).to(torch::kFloat32);
  evaluated(exact, skies * 0.9);  // anchors
  const auto [values, gradients] = evaluated(exact, skies);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto [value, gradient] = evaluated(exact, skies[i].to(torch::kFloat64));
    CHECK(relative_error(values[i], value) < 1e-6);
    CHECK(norm_difference(gradients[i], gradient) < 1e-6);
  }
}

TEST_CASE("second derivatives of the exact and the loose likelihood are those of a quadratic form", "[losses][exact][quick]") {
  const auto data = observed(2, 100, 10, 29);
  auto exact = ExactLikelihood(small_grid, data, ChannelMap::continuum(2));
  auto loose = LooseLikelihood(small_grid, data, ChannelMap::continuum(2), NufftOptions{1e-12});
  const auto direction = normal({1, exact_npix, exact_npix}, torch::kFloat64, 31);
  for (Likelihood* likelihood : {static_cast<Likelihood*>(exact.get()), static_cast<Likelihood*>(loose.get())}) {
    const auto x = exact_disc(1).set_requires_grad(true);
    const auto gradient = torch::autograd::grad({likelihood->chi_squared(x)}, {x}, {}, true, true)[0];
    const auto product = torch::autograd::grad({(gradient * direction).sum()}, {x})[0];
    auto ahead = torch::empty_like(direction), behind = torch::empty_like(direction);
    likelihood->value_and_gradient(direction, ahead, Accumulate::overwrite);
    likelihood->value_and_gradient(-direction, behind, Accumulate::overwrite);
    CHECK(relative_error(product, (ahead - behind) / 2) < 1e-10);
  }
}

TEMPLATE_TEST_CASE("exact and loose chi squared are bitwise the same for any number of threads", "[losses][exact][quick]", float,
                   double) {
  const auto data = observed(1, 40000, 10, 37);
  const auto sky = exact_disc(1).to(dtype_of<TestType>());
  const auto run = [&](int threads) {
    const Threads setting(threads);
    auto exact = ExactLikelihood(small_grid, data, ChannelMap::cube(1));
    auto loose = LooseLikelihood(small_grid, data, ChannelMap::cube(1));
    evaluated(exact, sky);  // the anchor
    return std::pair(evaluated(exact, sky * TestType(1.1)), evaluated(loose, sky));
  };
  const auto [exact_1, loose_1] = run(1);
  for (const int threads : {2, 5}) {
    const auto [exact, loose] = run(threads);
    CHECK(same(exact.first, exact_1.first));
    CHECK(same(exact.second, exact_1.second));
    CHECK(same(loose.first, loose_1.first));
    CHECK(same(loose.second, loose_1.second));
  }
}

TEST_CASE("a fit to the exact likelihood goes where one to the loose likelihood goes", "[losses][exact]") {
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  const auto data = observed(1, 400, 20, 43);
  const auto fitted = [&](const auto& likelihood) {
    const auto model = GriddedNet(GriddedNetOptions(small_grid).dtype(dtype));
    const auto options = TrainOptions().optimizer(OptimizerKind::adam).epochs(30);
    return Trainer(model, Objective(likelihood, {terms::sparsity(1e-3)}), options).fit();
  };
  const auto exact = fitted(ExactLikelihood(small_grid, data, ChannelMap::cube(1)));
  const auto loose = fitted(LooseLikelihood(small_grid, data, ChannelMap::cube(1)));
  REQUIRE(exact.history.size() == 30);
  CHECK(exact.history.back().total() < 0.5 * exact.history.front().total());
  for (std::size_t i = 0; i < 30; ++i) {
    CHECK(exact.history[i].total() == Approx(loose.history[i].total()).epsilon(dtype == torch::kFloat64 ? 1e-4 : 1e-3));
  }
}

TEST_CASE("images that do not match the visibilities are refused", "[losses][exact][quick]") {
  const auto data = observed(1, 20, 10, 41);
  auto exact = ExactLikelihood(small_grid, data, ChannelMap::cube(1));
  auto loose = LooseLikelihood(small_grid, data, ChannelMap::cube(1));
  for (Likelihood* likelihood : {static_cast<Likelihood*>(exact.get()), static_cast<Likelihood*>(loose.get())}) {
    CHECK_THROWS_AS(likelihood->chi_squared(torch::zeros({2, exact_npix, exact_npix}, torch::kFloat64)), ShapeError);
    CHECK_THROWS_AS(likelihood->chi_squared(torch::zeros({1, 8, 8}, torch::kFloat64)), ShapeError);
    CHECK_THROWS_AS(likelihood->chi_squared(torch::zeros({1, exact_npix, exact_npix}, torch::kInt64)), ShapeError);
    CHECK_THROWS_AS(likelihood->chi_squared(
                        torch::zeros({1, exact_npix, exact_npix}, torch::TensorOptions(torch::kFloat64).device(torch::kMeta))),
                    DeviceError);
  }
  CHECK_THROWS_AS(LooseLikelihood(GridCoords(0.06, exact_npix), data, ChannelMap::cube(1)), DataError);
  CHECK_THROWS_AS(LooseLikelihood(small_grid, data, ChannelMap::cube(2)), ValueError);
}
