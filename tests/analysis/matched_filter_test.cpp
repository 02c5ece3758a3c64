#include "catch.h"

#include <cmath>
#include <complex>
#include <vector>

#include <mpol_cpp/analysis/matched_filter.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords filter_grid(0.05, 16);

Tensor random_frequencies(std::int64_t nchan) { return 230e9 + 1e8 * at::arange(nchan, torch::kFloat64); }

/// Baselines in metres within the grid, whose u, v in wavelengths grow by 0.04 % from channel to channel.
Baselines metre_baselines(std::int64_t nchan, std::int64_t nvis) {
  const double longest = 0.9 * filter_grid.max_uv() / units::metres_to_lambda(1, 230e9 + 1e8 * static_cast<double>(nchan));
  const auto u = (2 * uniform({nvis}, torch::kFloat64, 1) - 1) * longest,
             v = (2 * uniform({nvis}, torch::kFloat64, 2) - 1) * longest;
  return Baselines::in_metres(u, v, random_frequencies(nchan));
}

Baselines shared_baselines(std::int64_t nvis) {
  const double longest = 0.9 * filter_grid.max_uv();
  return Baselines::in_lambda((2 * uniform({nvis}, torch::kFloat64, 1) - 1) * longest,
                              (2 * uniform({nvis}, torch::kFloat64, 2) - 1) * longest);
}

/// Noise that agrees with its weights, which differ from sample to sample, on top of a model, (nchan, nvis) or a number.
template <typename T>
Visibilities noisy(const Baselines& baselines, std::int64_t nchan, const Tensor& model, std::uint64_t seed) {
  const auto weights = 100 * (0.2 + uniform({nchan, baselines.nvis()}, torch::kFloat64, seed));
  const auto noise =
      at::complex(normal(weights.sizes(), torch::kFloat64, seed + 1), normal(weights.sizes(), torch::kFloat64, seed + 2));
  return {baselines, (model + noise / weights.sqrt()).to(complex_dtype_of<T>()), weights.to(dtype_of<T>())};
}

Tensor no_source() { return torch::zeros({1, 1}, torch::kComplexDouble); }

template <typename T>
MatchedFilterOptions precise() {
  return MatchedFilterOptions().dtype(dtype_of<T>()).tolerance(tolerance<T>(1e-12, 1e-6)).phase_error(1e-9);
}

/// The formula as it stands: S and N of one template at each position.
std::pair<std::vector<double>, std::vector<double>> plain_sums(const Visibilities& visibilities, const Tensor& cube,
                                                               const GridCoords& coords = filter_grid) {
  const auto width = cube.size(0);
  std::vector<double> products, norms;
  for (std::int64_t p = 0; p + width <= visibilities.nchan(); ++p) {
    double product = 0, norm = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      const auto block = visibilities.block(p + k, 0, visibilities.nvis());
      const auto model = direct_visibilities(cube.narrow(0, k, 1), coords, Baselines::in_lambda(block.u, block.v), 1)[0];
      const auto* t = model.const_data_ptr<c10::complex<double>>();
      const auto* v = block.data.const_data_ptr<c10::complex<double>>();
      const auto* w = block.weights.const_data_ptr<double>();
      for (std::int64_t j = 0; j < visibilities.nvis(); ++j) {
        product += w[j] * (t[j].real() * v[j].real() + t[j].imag() * v[j].imag());
        norm += w[j] * (t[j].real() * t[j].real() + t[j].imag() * t[j].imag());
      }
    }
    products.push_back(product);
    norms.push_back(norm);
  }
  return {products, norms};
}

double mean_square(const Tensor& values) { return values.square().mean().item<double>(); }

}  // namespace

TEMPLATE_TEST_CASE("the filter is the formula as it stands, whatever the baselines are in", "[analysis][filter][quick]", float,
                   double) {
  const std::int64_t nchan = 7, nvis = 90;
  const bool metres = GENERATE(true, false);
  const auto visibilities =
      noisy<TestType>(metres ? metre_baselines(nchan, nvis) : shared_baselines(nvis), nchan, no_source(), 5);
  const auto templates =
      torch::stack({random_image(filter_grid, 3, torch::kFloat64, 3), random_image(filter_grid, 3, torch::kFloat64, 4)});
  const auto found = matched_filter(visibilities, templates, filter_grid, precise<TestType>());
  REQUIRE(found.response.sizes() == at::IntArrayRef({2, 5}));
  const double within = tolerance<TestType>(1e-10, 2e-5);
  for (std::int64_t t = 0; t < 2; ++t) {
    const auto [products, norms] = plain_sums(visibilities, templates[t]);
    const auto product = torch::tensor(products, torch::kFloat64), norm = torch::tensor(norms, torch::kFloat64);
    CHECK(relative_error(found.response[t], product / norm.sqrt()) < within);
    CHECK(relative_error(found.amplitude[t], product / norm) < within);
    CHECK(relative_error(found.amplitude_error[t], norm.rsqrt()) < within);
  }
  CHECK(found.middle_channel[0].template item<double>() == 1);
  CHECK(found.middle_channel[4].template item<double>() == 5);
}

TEMPLATE_TEST_CASE("white noise has a response of mean 0 and variance 1", "[analysis][filter][quick]", float, double) {
  // Templates of one channel: each position is an independent number.
  const std::int64_t nchan = 4000, nvis = 40;
  const auto visibilities = noisy<TestType>(shared_baselines(nvis), nchan, no_source(), 11);
  const auto found = matched_filter(visibilities, random_image(filter_grid, 1, torch::kFloat64, 3), filter_grid,
                                    MatchedFilterOptions().dtype(dtype_of<TestType>()));
  CHECK(std::abs(found.response.mean().template item<double>()) < 4 / std::sqrt(4000.0));
  CHECK_THAT(mean_square(found.response), WithinAbs(1, 4 * std::sqrt(2 / 4000.0)));
  // Of several channels: as many independent ones as fit side by side.
  const auto wide = matched_filter(visibilities, random_image(filter_grid, 5, torch::kFloat64, 3), filter_grid,
                                   MatchedFilterOptions().dtype(dtype_of<TestType>()));
  CHECK_THAT(mean_square(wide.response), WithinAbs(1, 4 * std::sqrt(2 / 800.0)));
  const auto peak = filter_peak(wide.response[0], 5);
  CHECK_THAT(peak.noise, WithinAbs(1, 4 * peak.noise_error));
  CHECK(peak.noise_error < 0.05);
  CHECK(peak.response < 6);
}

TEMPLATE_TEST_CASE("a line is found where it is, as strong as its noise says", "[analysis][filter][quick]", float, double) {
  const std::int64_t nchan = 40, nvis = 300, width = 4, at_channel = 17;
  const double strength = 2;
  const auto baselines = shared_baselines(nvis);
  auto cube = random_image(filter_grid, width, torch::kFloat64, 3);
  cube *= torch::tensor({0.5, 1.0, 2.0, 0.7}, torch::kFloat64).view({4, 1, 1});
  auto model = torch::zeros({nchan, nvis}, torch::kComplexDouble);
  model.narrow(0, at_channel, width).copy_(strength * direct_visibilities(cube, filter_grid, baselines, width));

  const auto alone =
      matched_filter({baselines, model, torch::full({nchan, nvis}, 25.0, torch::kFloat64)}, cube, filter_grid, precise<double>());
  const auto expected = strength / alone.amplitude_error[0][at_channel].template item<double>();
  CHECK(alone.response.argmax().template item<std::int64_t>() == at_channel);
  CHECK_THAT(alone.response[0][at_channel].template item<double>(), WithinRel(expected, 1e-9));
  CHECK_THAT(alone.amplitude[0][at_channel].template item<double>(), WithinRel(strength, 1e-9));

  const auto found = matched_filter(noisy<TestType>(baselines, nchan, model, 21), cube, filter_grid, precise<TestType>());
  const auto peak = filter_peak(found.response[0], width);
  REQUIRE(peak.response > 10);
  CHECK(peak.position == at_channel);
  const auto error = found.amplitude_error[0][at_channel].template item<double>();
  CHECK_THAT(found.amplitude[0][at_channel].template item<double>(), WithinAbs(strength, 4 * error));
  CHECK_THAT(peak.response, WithinAbs(strength / error, 4));
}

TEMPLATE_TEST_CASE("a dark field around a template alters nothing, and what shines there is not left out",
                   "[analysis][filter][quick]", float, double) {
  const std::int64_t nchan = 12, nvis = 400, width = 3, wide_npix = 128;
  const GridCoords wide_grid(filter_grid.cell_size(), wide_npix);
  const auto baselines = shared_baselines(nvis);
  const auto cube = random_image(filter_grid, width, torch::kFloat64, 3);
  auto wide = torch::zeros({2, width, wide_npix, wide_npix}, torch::kFloat64);
  const auto inner = [&](const Tensor& image) {
    const auto first = (wide_npix - filter_grid.npix()) / 2;
    return image.narrow(-1, first, filter_grid.npix()).narrow(-2, first, filter_grid.npix());
  };
  inner(wide).copy_(cube);
  wide[1][2][0][5] = 0.5 * cube.max();  // one channel of one template, in the corner
  const auto model = direct_visibilities(wide[1], wide_grid, baselines, width).repeat({nchan / width, 1});
  const auto data = noisy<TestType>(baselines, nchan, model, 21);
  const auto own = matched_filter(data, cube, filter_grid, precise<TestType>());
  const auto found = matched_filter(data, wide, wide_grid, precise<TestType>());
  CHECK(relative_error(found.response[0], own.response[0]) < tolerance<TestType>(1e-10, 1e-5));
  CHECK(relative_error(found.amplitude_error[0], own.amplitude_error[0]) < tolerance<TestType>(1e-10, 1e-5));
  const auto [products, norms] = plain_sums(data, wide[1], wide_grid);
  const auto product = torch::tensor(products, torch::kFloat64), norm = torch::tensor(norms, torch::kFloat64);
  CHECK(relative_error(found.response[1], product / norm.sqrt()) < tolerance<TestType>(1e-10, 2e-5));
}

TEMPLATE_TEST_CASE("templates together are as one by one, blocks of samples as the whole, any number of threads as one",
                   "[analysis][filter][quick]", float, double) {
  const std::int64_t nchan = 30, nvis = 9000, width = 20;
  const auto visibilities = noisy<TestType>(metre_baselines(nchan, nvis), nchan, no_source(), 31);
  std::vector<Tensor> cubes;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    cubes.push_back(random_image(filter_grid, width, dtype_of<TestType>(), 40 + seed));
  const auto options = MatchedFilterOptions().dtype(dtype_of<TestType>()).tolerance(tolerance<TestType>(1e-12, 1e-6));
  const auto together = matched_filter(visibilities, torch::stack(cubes), filter_grid, options);
  const double within = tolerance<TestType>(1e-11, 2e-5);
  for (std::int64_t t = 0; t < 5; ++t) {
    const auto alone = matched_filter(visibilities, cubes[static_cast<std::size_t>(t)], filter_grid, options);
    CHECK((together.response[t] - alone.response[0]).abs().max().template item<double>() < within);
    CHECK(relative_error(together.amplitude_error[t], alone.amplitude_error[0]) < within);
  }
  for (const int count : {1, 3}) {
    const Threads threads(count);
    CHECK(same(matched_filter(visibilities, torch::stack(cubes), filter_grid, options).response, together.response));
  }
  auto blocks = options;
  const auto cut = matched_filter(visibilities, torch::stack(cubes), filter_grid, blocks.block(1234));
  CHECK((together.response - cut.response).abs().max().template item<double>() < within);
}

TEST_CASE("channels share u, v only where that hardly alters the response", "[analysis][filter][quick]") {
  const std::int64_t nchan = 60, nvis = 400, width = 3;  // u, v differ by 2.6 % over the band
  const auto baselines = metre_baselines(nchan, nvis);
  const auto cube = random_image(filter_grid, width, torch::kFloat64, 3);
  const auto exact = precise<double>();
  for (const std::int64_t at_channel : {0, 29, 57}) {
    auto model = torch::zeros({nchan, nvis}, torch::kComplexDouble);
    for (std::int64_t k = 0; k < width; ++k) {
      const auto [u, v] = baselines.channel(at_channel + k);
      model[at_channel + k].copy_(direct_visibilities(cube.narrow(0, k, 1), filter_grid, Baselines::in_lambda(u, v), 1)[0]);
    }
    const Visibilities visibilities(baselines, model, torch::ones({nchan, nvis}, torch::kFloat64));
    const auto wanted = matched_filter(visibilities, cube, filter_grid, exact).response[0][at_channel].item<double>();
    for (const double phase : {0.1, 0.02}) {
      auto options = exact;
      const auto got =
          matched_filter(visibilities, cube, filter_grid, options.phase_error(phase)).response[0][at_channel].item<double>();
      CHECK(got <= wanted * (1 + 1e-12));
      CHECK(got > wanted * (1 - phase * phase / 2));
    }
  }
  // In wavelengths, one set for each channel: the same as in metres.
  std::vector<Tensor> u, v;
  for (std::int64_t c = 0; c < nchan; ++c) {
    const auto [u_of, v_of] = baselines.channel(c);
    u.push_back(u_of);
    v.push_back(v_of);
  }
  const auto in_metres = noisy<double>(baselines, nchan, no_source(), 51);
  const Visibilities in_lambda(Baselines::in_lambda(torch::stack(u), torch::stack(v)), in_metres.data(), in_metres.weights());
  CHECK(relative_error(matched_filter(in_lambda, cube, filter_grid).response,
                       matched_filter(in_metres, cube, filter_grid).response) < 1e-4);
}

TEST_CASE("the response does not depend on the unit of the template or of the weights", "[analysis][filter][quick]") {
  const auto visibilities = noisy<float>(shared_baselines(200), 12, no_source(), 61);
  const auto cube = random_image(filter_grid, 3, torch::kFloat64, 3);
  const auto plain = matched_filter(visibilities, cube, filter_grid),
             faint = matched_filter(visibilities, 1e-25 * cube, filter_grid);
  CHECK(relative_error(faint.response, plain.response) < 1e-6);
  CHECK(relative_error(1e-25 * faint.amplitude, plain.amplitude) < 1e-6);
  CHECK(relative_error(1e-25 * faint.amplitude_error, plain.amplitude_error) < 1e-6);
  // Weights four times too large: the noise is twice what they say, which filter_peak shows.
  const auto wrong = noisy<float>(shared_baselines(40), 3000, no_source(), 62);
  const Visibilities heavier(wrong.baselines(), wrong.data(), 4 * wrong.weights());
  const auto one = random_image(filter_grid, 1, torch::kFloat64, 3);
  CHECK(filter_peak(matched_filter(heavier, one, filter_grid).response[0], 1).noise == Approx(2).epsilon(0.1));
}

TEST_CASE("a template is turned to the order of the data's channels", "[analysis][filter][quick]") {
  const auto cube = random_image(filter_grid, 4, torch::kFloat64, 3);
  const auto up = 230e9 + 1e6 * at::arange(4, torch::kFloat64), data = 231e9 + 1.005e6 * at::arange(9, torch::kFloat64);
  CHECK(same(in_channel_order(cube, up, data), cube));
  CHECK(same(in_channel_order(cube.flip({0}), up.flip({0}), data), cube));
  CHECK(same(in_channel_order(cube.flip({0}), up, data.flip({0})), cube));
  CHECK(same(in_channel_order(cube, up.flip({0}), data.flip({0})), cube));
  CHECK_THROWS_AS(in_channel_order(cube, up, 231e9 + 1.02e6 * at::arange(9, torch::kFloat64)), DataError);
  CHECK_THROWS_AS(in_channel_order(cube, up, up.index_select(0, torch::tensor({0, 1, 3}))), DataError);
  CHECK_THROWS_AS(in_channel_order(cube, data, data), ShapeError);
  CHECK(channel_spacing(data.flip({0}), "the data") == Approx(-1.005e6));
}

TEST_CASE("a filter refuses what it cannot lay on the data", "[analysis][filter][quick]") {
  const auto visibilities = noisy<double>(shared_baselines(50), 4, no_source(), 71);
  const auto cube = random_image(filter_grid, 3, torch::kFloat64, 3);
  const auto refuse = [&](const Tensor& templates) { return matched_filter(visibilities, templates, filter_grid); };
  CHECK_THROWS_AS(refuse(random_image(filter_grid, 5, torch::kFloat64, 3)), DataError);
  CHECK_THROWS_AS(refuse(torch::stack({cube, 0 * cube})), DataError);
  CHECK_THROWS_AS(refuse(cube / 0), DataError);
  CHECK_THROWS_AS(refuse(cube[0]), ShapeError);
  CHECK_THROWS_AS(refuse(cube.narrow(2, 0, 8)), ShapeError);
  CHECK_THROWS_AS(matched_filter(visibilities, cube, GridCoords(0.2, 16)), DataError);
  CHECK_THROWS_AS(matched_filter(visibilities, cube, filter_grid, MatchedFilterOptions().block(0)), ValueError);
  CHECK_THROWS_AS(matched_filter(visibilities, cube, filter_grid, MatchedFilterOptions().phase_error(0)), ValueError);
  CHECK_THROWS_AS(filter_peak(cube, 3), ShapeError);
  const Visibilities beyond(visibilities.baselines(), visibilities.data(), 1e38 * visibilities.weights());
  CHECK_THROWS_AS(matched_filter(beyond, cube, filter_grid), DataError);
  CHECK_NOTHROW(matched_filter(beyond, cube, filter_grid, precise<double>()));
  CHECK(matched_filter(visibilities, random_image(filter_grid, 4, torch::kFloat64, 3), filter_grid).response.sizes() ==
        at::IntArrayRef({1, 1}));
}
