#include "catch.h"

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/gridding/data_averager.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Samples of a constant source with noise, `factor` times what the weights promise; several in most cells.
Visibilities noisy_samples(const GridCoords& coords, std::int64_t nvis, double factor) {
  const auto u = (uniform({nvis}, torch::kFloat64, 1) - 0.5) * 1.9 * coords.max_uv();
  const auto v = (uniform({nvis}, torch::kFloat64, 2) - 0.5) * 1.9 * coords.max_uv();
  const auto weights = 0.5 + 9 * uniform({2, nvis}, torch::kFloat64, 3);
  const auto noise = at::complex(normal({2, nvis}, torch::kFloat64, 4), normal({2, nvis}, torch::kFloat64, 5));
  return Visibilities(Baselines::in_lambda(u, v), 3.0 + factor * noise / weights.sqrt(), weights);
}

Visibilities golden_data(const std::string& file, const std::string& key) {
  const Golden dataset("dataset"), other(file);
  return Visibilities(Baselines::in_lambda(dataset("in_uu"), dataset("in_vv")), other(key), dataset("in_weight"));
}

}  // namespace

TEST_CASE("the factor by which sigma is wrong is found, also with few samples in each cell", "[analysis][quick]") {
  const GridCoords coords(0.05, 32);
  const double factor = GENERATE(0.5, 1.0, 2.0);
  const std::int64_t nvis = GENERATE(2500, 20000);  // about 2.7 and 22 in each cell
  const auto statistics = residual_statistics(cell_residuals(coords, noisy_samples(coords, nvis, factor)));
  CHECK(statistics.sigma_factor == Approx(factor).epsilon(0.04));
  CHECK(statistics.standard_deviation == Approx(factor).epsilon(0.04));
  CHECK(statistics.weight_factor() == Approx(1 / (factor * factor)).epsilon(0.08));
  CHECK(statistics.beyond_four < 1e-3);
}

TEST_CASE("the reference data have right weights, those with doubled noise have sigma twice too small", "[analysis][quick]") {
  const auto coords = dataset_coords();
  const auto right = residual_statistics(cell_residuals(coords, golden_data("dataset", "in_data")));
  const auto doubled = residual_statistics(cell_residuals(coords, golden_data("gridding", "in_data_noise_x2")));
  CHECK(right.sigma_factor < 1.3);
  CHECK(doubled.sigma_factor > 1.5 * right.sigma_factor);
  CHECK(doubled.sigma_factor < 2.05 * right.sigma_factor);
}

TEST_CASE("a tenth of wild samples hardly moves the factor", "[analysis][quick]") {
  auto residuals = at::complex(normal({20000}, torch::kFloat64, 1), normal({20000}, torch::kFloat64, 2));
  residuals = residuals.clone();
  residuals.slice(0, 0, 2000) *= 1e3;
  const auto statistics = residual_statistics(residuals);
  CHECK(statistics.sigma_factor > 1);
  CHECK(statistics.sigma_factor < 1.2);
  CHECK(statistics.standard_deviation > 100);
  CHECK(statistics.beyond_four == Approx(0.1).epsilon(0.02));
}

TEST_CASE("digits are kept at a signal-to-noise ratio of a million", "[analysis][quick]") {
  const GridCoords coords(0.05, 16);
  const auto plain = noisy_samples(coords, 4000, 1.0);
  const Visibilities bright(plain.baselines(), plain.data() + 1e6, plain.weights());
  const auto expected = residual_statistics(cell_residuals(coords, plain));
  CHECK(residual_statistics(cell_residuals(coords, bright)).sigma_factor == Approx(expected.sigma_factor).epsilon(1e-6));
}

TEST_CASE("samples alone in their cell say nothing", "[analysis][quick]") {
  const GridCoords coords(0.05, 16);
  const auto u = coords.du() * torch::tensor({1.0, 3.0, 3.0}, torch::kFloat64);
  const Visibilities visibilities(Baselines::in_lambda(u, u),
                                  torch::tensor({9.0, 1.0, 2.0}, torch::kFloat64).to(torch::kComplexDouble),
                                  torch::ones({3}, torch::kFloat64));
  const auto residuals = cell_residuals(coords, visibilities)[0];
  CHECK(residuals[0].abs().item<float>() == 0);
  CHECK(at::real(residuals[1]).item<float>() == Approx(-0.5 * std::sqrt(2.0)));
  CHECK(at::real(residuals[2]).item<float>() == Approx(0.5 * std::sqrt(2.0)));
  CHECK(residual_statistics(residuals).samples == 2);
  CHECK(residual_statistics(torch::zeros({4}, torch::kComplexFloat)).samples == 0);
  CHECK_THROWS_AS(residual_statistics(torch::zeros({4})), ShapeError);
}

TEST_CASE("every group has its own scatter", "[analysis][quick]") {
  auto residuals = at::complex(normal({2, 9000}, torch::kFloat64, 1), normal({2, 9000}, torch::kFloat64, 2)).clone();
  const auto groups = at::arange(9000, torch::kInt64) % 3 + 5;
  residuals *= at::where(groups == 6, 3.0, 1.0);
  const auto scatter = scatter_by_group(residuals, groups);
  REQUIRE(scatter.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(scatter[i].group == static_cast<std::int64_t>(i) + 5);
    CHECK(scatter[i].statistics.samples == 6000);
    CHECK(scatter[i].statistics.sigma_factor == Approx(i == 1 ? 3.0 : 1.0).epsilon(0.04));
  }
  const auto by_channel = scatter_by_group(residuals, at::arange(2, torch::kInt64).unsqueeze(1));
  REQUIRE(by_channel.size() == 2);
  CHECK(by_channel[1].statistics.samples == 9000);
  CHECK_THROWS_AS(scatter_by_group(residuals, torch::zeros({5}, torch::kInt64)), ShapeError);
  CHECK(scatter_by_group(residuals.narrow(1, 0, 0), torch::zeros({2, 1}, torch::kInt64)).empty());
}

TEST_CASE("residuals count as they are held: either dtype, conjugated or strided", "[analysis][quick]") {
  const auto narrow = at::complex(normal({3, 4000}, torch::kFloat32, 3), normal({3, 4000}, torch::kFloat32, 4));
  const auto wide = narrow.to(torch::kComplexDouble);
  const auto expected = residual_statistics(wide);
  for (const auto& same : {narrow, narrow.conj(), narrow.t().contiguous().t(), wide.conj()}) {
    const auto statistics = residual_statistics(same);
    CHECK(statistics.samples == 12000);
    CHECK(statistics.sigma_factor == expected.sigma_factor);
    CHECK(statistics.standard_deviation == Approx(expected.standard_deviation).epsilon(1e-3));
  }
  const auto groups = at::arange(12000, torch::kInt64).view({3, 4000}) % 2;
  const auto from_narrow = scatter_by_group(narrow, groups), from_wide = scatter_by_group(wide, groups);
  REQUIRE(from_narrow.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(from_narrow[i].statistics.sigma_factor == from_wide[i].statistics.sigma_factor);
    CHECK(from_narrow[i].statistics.mean == from_wide[i].statistics.mean);
  }
}

TEST_CASE("the histogram of unit noise is the unit Gaussian", "[analysis][quick]") {
  const auto residuals = at::complex(normal({200000}, torch::kFloat64, 1), normal({200000}, torch::kFloat64, 2));
  const auto histogram = residual_histogram(residuals, 50, 5);
  CHECK(histogram.edges.size(0) == 51);
  CHECK(histogram.density.sum().item<double>() * 0.2 == Approx(1).epsilon(1e-4));
  CHECK(histogram.expected.sum().item<double>() * 0.2 == Approx(1).epsilon(1e-5));
  CHECK((histogram.density - histogram.expected).abs().max().item<double>() < 0.01);
  CHECK_THROWS_AS(residual_histogram(residuals, 0), ValueError);
}

TEST_CASE("scaled weights pass the scatter check that wrong ones fail", "[analysis][quick]") {
  const GridCoords coords(0.05, 32);
  const auto wrong = noisy_samples(coords, 20000, 2.0);
  CHECK_FALSE(DataAverager(coords, wrong).scatter().acceptable());
  const double factor = residual_statistics(cell_residuals(coords, wrong)).weight_factor();
  const auto right = scale_weights(wrong, torch::tensor(factor, torch::kFloat64));
  CHECK(DataAverager(coords, right).scatter().acceptable());
  CHECK(residual_statistics(cell_residuals(coords, right)).sigma_factor == Approx(1).epsilon(1e-3));
  CHECK_THROWS_AS(scale_weights(wrong, torch::tensor(-1.0)), DataError);
}
