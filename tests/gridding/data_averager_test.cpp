#include "catch.h"

#include <atomic>
#include <cmath>
#include <vector>

#include <ATen/Parallel.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/gridding/cells/cell_sums.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/cells/visit_cells.h>
#include <mpol_cpp/ops/simd/isa.h>

#include "compare.h"
#include "forced_isa.h"
#include "observation.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

bool same_bits(const gridding::CellSums& a, const gridding::CellSums& b) {
  return torch::equal(a.cells, b.cells) && torch::equal(a.averages, b.averages) && torch::equal(a.weights, b.weights) &&
         torch::equal(a.samples, b.samples) && torch::equal(a.real, b.real) && torch::equal(a.imag, b.imag) &&
         a.scatter.real == b.scatter.real && a.scatter.imag == b.scatter.imag && a.scatter.cells == b.scatter.cells;
}

gridding::CellSumOptions with_statistics() {
  gridding::CellSumOptions options;
  options.cell_statistics = true;
  return options;
}

Visibilities one_sample(double u, double v) {
  return {Baselines::in_lambda(torch::full({1}, u, torch::kDouble), torch::full({1}, v, torch::kDouble)),
          torch::full({1}, c10::complex<double>(2, 3), torch::kComplexDouble), torch::full({1}, 4.0, torch::kDouble)};
}

/// Ground indices of the only occupied cell.
std::pair<std::int64_t, std::int64_t> ground_cell(const GriddedDataset& dataset, std::int64_t place = 0) {
  const auto npix = dataset->coords().npix(), cell = dataset->cells()[place].item<std::int64_t>();
  return {(cell % npix + npix / 2) % npix, (cell / npix + npix / 2) % npix};
}

/// Cells, weights and averages by sorting the samples of one channel.
void check_by_sorting(const GridCoords& coords, const Visibilities& visibilities) {
  const auto sums = gridding::sum_cells(coords, visibilities, ChannelMap::cube(1), with_statistics());
  const auto [u, v] = visibilities.baselines().channel(0);
  const auto half = coords.npix() / 2;
  const auto packed = [&](const Tensor& x) {
    return ((x / coords.du() + (static_cast<double>(half) + 0.5)).floor().to(torch::kInt64) + half).remainder(coords.npix());
  };
  const auto [cells, places, samples] =
      at::_unique2(packed(v) * coords.npix() + packed(u), /*sorted=*/true, /*return_inverse=*/true, /*return_counts=*/true);
  REQUIRE(torch::equal(sums.cells, cells));
  CHECK(torch::equal(sums.samples, samples));
  const auto w = visibilities.weights()[0], d = visibilities.data()[0];
  const auto weights = at::zeros({cells.size(0)}, torch::kDouble).index_add(0, places, w);
  CHECK(relative_error(sums.weights, weights) < 1e-13);
  CHECK(relative_error(sums.averages, at::zeros({cells.size(0)}, torch::kComplexDouble).index_add(0, places, w * d) / weights) <
        1e-12);
}

}  // namespace

TEMPLATE_TEST_CASE("gridding conserves weight and weighted flux, channel by channel", "[gridding][quick]", double, float) {
  const GridCoords coords(0.05, 64);
  const auto visibilities = random_observation(coords, 3, 5000, dtype_of<TestType>(), 1);
  const auto dataset = DataAverager(coords, visibilities, unchecked()).to_dataset();
  const auto weights = visibilities.weights().to(torch::kDouble);
  const auto data = visibilities.data().to(torch::kComplexDouble);
  CHECK(relative_error(dataset->packed_weights().sum({1, 2}), weights.sum(1)) < 1e-13);
  const auto flux = (dataset->packed_weights() * dataset->packed_visibilities()).sum({1, 2});
  CHECK(relative_error(flux, (weights * data).sum(1)) < 1e-12);
  CHECK(dataset->nvis() == 15000);
}

TEST_CASE("averages and scatter are those of direct sums over the samples of each cell", "[gridding][quick]") {
  const GridCoords coords(0.05, 16);
  const auto visibilities = random_observation(coords, 1, 700, torch::kDouble, 2);
  const DataAverager averager(coords, visibilities, unchecked());
  const auto dataset = averager.to_dataset();
  const auto statistics = averager.cell_statistics();
  const auto [u, v] = visibilities.baselines().channel(0);
  std::vector<std::int64_t> keys;
  for (std::int64_t i = 0; i < 700; ++i) {
    const auto packed = [&](double x) { return (coords.uv_cell(x) + 8) % 16; };
    keys.push_back(packed(v[i].item<double>()) * 16 + packed(u[i].item<double>()));
  }
  const auto key = at::tensor(keys, torch::kInt64);
  std::vector<double> scatter;
  for (std::int64_t k = 0; k < averager.ncells(); ++k) {
    const auto mine = key == dataset->cells()[k];
    const auto w = visibilities.weights()[0].masked_select(mine), d = visibilities.data()[0].masked_select(mine);
    const auto mean = (w * d).sum() / w.sum();
    const auto residual = at::view_as_real((d - mean) * w.sqrt()).std(0, /*unbiased=*/false);
    REQUIRE(w.size(0) == statistics.samples[k].item<std::int64_t>());
    CHECK(relative_error(dataset->visibilities()[k], mean) < 1e-13);
    CHECK_THAT(statistics.real[k].item<double>(), WithinAbs(residual[0].item<double>(), 1e-13));
    CHECK_THAT(statistics.imag[k].item<double>(), WithinAbs(residual[1].item<double>(), 1e-13));
    if (w.size(0) > 1) scatter.push_back(residual[0].item<double>());
  }
  std::sort(scatter.begin(), scatter.end());
  const auto n = scatter.size();
  CHECK_THAT(averager.scatter().real, WithinAbs(0.5 * (scatter[(n - 1) / 2] + scatter[n / 2]), 1e-13));
}

TEST_CASE("the order of the samples does not matter", "[gridding][quick]") {
  const GridCoords coords(0.05, 64);
  const auto visibilities = random_observation(coords, 1, 20000, torch::kDouble, 3);
  const auto order = torch::randperm(20000, generator(4), torch::kInt64);
  const Visibilities shuffled(Baselines::in_lambda(visibilities.baselines().u().index_select(0, order),
                                                   visibilities.baselines().v().index_select(0, order)),
                              visibilities.data().index_select(1, order), visibilities.weights().index_select(1, order));
  const DataAverager one(coords, visibilities, unchecked()), other(coords, shuffled, unchecked());
  const auto a = one.to_dataset(), b = other.to_dataset();
  CHECK(torch::equal(a->cells(), b->cells()));
  CHECK(relative_error(a->visibilities(), b->visibilities()) < 1e-14);
  CHECK(relative_error(a->weights(), b->weights()) < 1e-14);
  CHECK_THAT(one.scatter().real, WithinRel(other.scatter().real, 1e-12));
}

TEST_CASE("gridding is the same bit for bit for any number of threads", "[gridding]") {
  const GridCoords coords(0.05, 128);
  const auto visibilities = random_observation(coords, 2, 600'000, torch::kFloat, 5);  // several runs of samples
  const auto with_threads = [&](int threads) {
    const Threads set(threads);
    return gridding::sum_cells(coords, visibilities, ChannelMap::continuum(2), with_statistics());
  };
  const auto one = with_threads(1);
  CHECK(same_bits(one, with_threads(2)));
  CHECK(same_bits(one, with_threads(3)));
  CHECK(same_bits(one, with_threads(7)));
}

TEST_CASE("gridding in strips is the same bit for bit as in one piece", "[gridding][quick]") {
  for (const std::int64_t npix : {64, 130}) {
    const GridCoords coords(0.05, npix);
    const auto visibilities = random_observation(coords, 2, 30'000, torch::kDouble, 6);
    auto options = with_statistics();
    const auto whole = gridding::sum_cells(coords, visibilities, ChannelMap::cube(2), options);
    for (const std::int64_t bytes : {std::int64_t{400'000}, std::int64_t{60'000}, std::int64_t{1}}) {
      options.table_bytes = bytes;
      for (const int threads : {1, 3}) {
        const Threads set(threads);
        CHECK(same_bits(whole, gridding::sum_cells(coords, visibilities, ChannelMap::cube(2), options)));
      }
    }
  }
}

TEST_CASE("a grid whose keys are marked part by part has every cell", "[gridding][quick]") {
  const GridCoords coords(0.001, 6000);  // 2^24 keys are marked at once
  check_by_sorting(coords, random_observation(coords, 1, 20'000, torch::kDouble, 16));
}

TEST_CASE("samples crowded in few cells are summed by any number of workers", "[gridding][quick]") {
  const GridCoords coords(0.05, 512);
  const auto spread = random_observation(coords, 1, 100'000, torch::kDouble, 17);
  for (const double share : {0.0, 0.004, 0.1}) {  // of the plane that is used
    const auto& baselines = spread.baselines();
    const Visibilities crowded(Baselines::in_lambda(baselines.u() * share, baselines.v() * share), spread.data(),
                               spread.weights());
    for (const int threads : {1, 2, 5}) {
      const Threads set(threads);
      check_by_sorting(coords, crowded);
    }
  }
}

TEST_CASE("instruction sets agree to rounding", "[gridding][quick]") {
  const GridCoords coords(0.05, 64);
  const auto visibilities = random_observation(coords, 1, 20'000, torch::kDouble, 7);
  const auto with_isa = [&](Isa isa) {
    const ForcedIsa forced(to_string(isa));
    return gridding::sum_cells(coords, visibilities, ChannelMap::cube(1), with_statistics());
  };
  const auto portable = with_isa(Isa::portable);
  for (const auto isa : {Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    const auto sums = with_isa(isa);
    CHECK(torch::equal(sums.cells, portable.cells));
    CHECK(torch::equal(sums.samples, portable.samples));
    CHECK(relative_error(sums.averages, portable.averages) < 1e-14);
    CHECK(relative_error(sums.weights, portable.weights) < 1e-14);
    CHECK(relative_error(sums.real, portable.real) < 1e-12);
  }
}

TEST_CASE("float32 samples are summed in float64", "[gridding][quick]") {
  const GridCoords coords(0.05, 32);
  const auto narrow = random_observation(coords, 1, 50'000, torch::kFloat, 8);
  const Visibilities wide(
      Baselines::in_lambda(narrow.baselines().u().to(torch::kDouble), narrow.baselines().v().to(torch::kDouble)),
      narrow.data().to(torch::kComplexDouble), narrow.weights().to(torch::kDouble));
  const auto a = gridding::sum_cells(coords, narrow, ChannelMap::cube(1), with_statistics());
  CHECK(same_bits(a, gridding::sum_cells(coords, wide, ChannelMap::cube(1), with_statistics())));
}

TEST_CASE("a sample on the edge between two cells lies in the upper one, its Hermitian partner in cell npix - i",
          "[gridding][quick]") {
  const GridCoords coords(0.05, 32);
  const double du = coords.du();
  for (const double edge : {-3.5, -0.5, 0.5, 7.5}) {
    const auto dataset =
        DataAverager(coords, one_sample(edge * du, 2 * du), DataAveragerOptions().hermitian_pairs(true)).to_dataset();
    REQUIRE(dataset->ncells() == 2);
    const auto [first_u, first_v] = ground_cell(dataset, 0);
    const auto [second_u, second_v] = ground_cell(dataset, 1);
    const auto cell = coords.uv_cell(edge * du);
    CHECK(cell == static_cast<std::int64_t>(std::floor(edge + 16.5)));
    CHECK((first_v == 18 ? first_u : second_u) == cell);
    CHECK((first_v == 18 ? second_u : first_u) == 32 - cell);
    CHECK(first_v + second_v == 32);
    const auto sample = dataset->packed_visibilities()[0][2][(cell + 16) % 32];
    CHECK(relative_error(sample, torch::full({}, c10::complex<double>(2, 3), torch::kComplexDouble)) == 0.0);
    const auto partner = dataset->packed_visibilities()[0][30][(48 - cell) % 32];
    CHECK(relative_error(partner, torch::full({}, c10::complex<double>(2, -3), torch::kComplexDouble)) == 0.0);
  }
}

TEST_CASE("samples up to the last number inside the grid have a cell", "[gridding][quick]") {
  for (const std::int64_t npix : {2, 4, 64, 1000}) {
    const GridCoords coords(0.0123, npix);
    const double last = std::nextafter(coords.max_uv(), 0.0);
    const auto upper = ground_cell(DataAverager(coords, one_sample(last, last)).to_dataset());
    CHECK(upper == std::pair(npix - 1, npix - 1));
    CHECK(coords.uv_cell(last) == npix - 1);
    const auto lower = ground_cell(DataAverager(coords, one_sample(-last, -last)).to_dataset());
    CHECK(lower == std::pair<std::int64_t, std::int64_t>(1, 1));
    CHECK_THROWS_AS(DataAverager(coords, one_sample(coords.max_uv(), 0)), DataError);
    CHECK_THROWS_AS(DataAverager(coords, one_sample(0, -coords.max_uv())), DataError);
  }
}

TEST_CASE("one sample is its own average and has no scatter", "[gridding][quick]") {
  const GridCoords coords(0.05, 32);
  const DataAverager averager(coords, one_sample(0, 0));
  const auto dataset = averager.to_dataset();
  CHECK(dataset->ncells() == 1);
  CHECK(dataset->weights()[0].item<double>() == 4.0);
  CHECK(dataset->visibilities()[0].item<c10::complex<double>>() == c10::complex<double>(2, 3));
  CHECK(averager.scatter().cells == 0);
  CHECK(averager.scatter().acceptable());
}

TEST_CASE("identical samples average to themselves without scatter", "[gridding][quick]") {
  const GridCoords coords(0.05, 32);
  const auto value = c10::complex<double>(0.1, -0.7);
  const Visibilities same(Baselines::in_lambda(torch::zeros({1000}, torch::kDouble), torch::zeros({1000}, torch::kDouble)),
                          torch::full({1000}, value, torch::kComplexDouble), torch::full({1000}, 9e8, torch::kDouble));
  const DataAverager averager(coords, same);
  const auto dataset = averager.to_dataset();
  CHECK(dataset->ncells() == 1);
  CHECK_THAT(dataset->visibilities()[0].item<c10::complex<double>>().real(), WithinRel(0.1, 1e-15));
  CHECK_THAT(dataset->weights()[0].item<double>(), WithinRel(9e11, 1e-13));
  CHECK(averager.scatter().cells == 1);
  CHECK(averager.scatter().real < 1e-6);
}

TEST_CASE("the scatter keeps its digits when samples have a signal-to-noise ratio of a million", "[gridding][quick]") {
  const GridCoords coords(0.05, 16);
  const auto quiet = random_observation(coords, 1, 4000, torch::kDouble, 9);
  const double sigma = 1e-6;
  const auto noise = normal({1, 4000}, torch::kComplexDouble, 10) * std::sqrt(2.0);
  const auto weights = torch::full({1, 4000}, 1 / (sigma * sigma), torch::kDouble);
  const auto scatter_of = [&](double signal) {
    return DataAverager(coords, Visibilities(quiet.baselines(), signal + sigma * noise, weights), unchecked()).scatter();
  };
  const auto without = scatter_of(0), with = scatter_of(1);
  CHECK_THAT(without.real, WithinAbs(1, 0.1));
  CHECK_THAT(with.real, WithinRel(without.real, 1e-8));
  CHECK_THAT(with.imag, WithinRel(without.imag, 1e-8));
}

TEST_CASE("several data channels feed one image channel, each at its own u, v", "[gridding][quick]") {
  const GridCoords coords(0.05, 64);
  const auto cube = random_observation(coords, 4, 3000, torch::kDouble, 11);
  const ChannelMap map{{{2}, {0, 1, 3}}};
  const auto mixed = DataAverager(coords, cube, unchecked().channel_map(map)).to_dataset();
  const auto apart = DataAverager(coords, cube, unchecked()).to_dataset();
  CHECK(mixed->nchan() == 2);
  CHECK(mixed->nvis() == 12000);
  const auto weights = apart->packed_weights(), flux = weights * apart->packed_visibilities();
  CHECK(relative_error(mixed->packed_weights()[0], weights[2]) < 1e-14);
  CHECK(relative_error(mixed->packed_weights()[1], weights[0] + weights[1] + weights[3]) < 1e-14);
  const auto mixed_flux = mixed->packed_weights() * mixed->packed_visibilities();
  CHECK(relative_error(mixed_flux[1], flux[0] + flux[1] + flux[3]) < 1e-13);
}

TEST_CASE("baselines in metres are gridded at each channel's frequency", "[gridding][quick]") {
  const GridCoords coords(0.05, 64);
  const auto metres = uniform({2, 500}, torch::kDouble, 12) * 400 - 200;
  const auto frequencies = at::tensor({2.3e11, 2.9e11}, torch::kDouble);
  const auto wavelengths = (frequencies / 299792458.0).unsqueeze(1);
  const auto data = normal({2, 500}, torch::kComplexDouble, 13), weights = torch::ones({2, 500}, torch::kDouble);
  const auto in_metres =
      DataAverager(coords, {Baselines::in_metres(metres[0], metres[1], frequencies), data, weights}, unchecked());
  const auto in_lambda =
      DataAverager(coords, {Baselines::in_lambda(metres[0] * wavelengths, metres[1] * wavelengths), data, weights}, unchecked());
  CHECK(torch::equal(in_metres.to_dataset()->cells(), in_lambda.to_dataset()->cells()));
  CHECK(relative_error(in_metres.to_dataset()->visibilities(), in_lambda.to_dataset()->visibilities()) == 0.0);
}

TEST_CASE("too large a scatter is an error, one warning or nothing, as asked", "[gridding][quick]") {
  const GridCoords coords(0.05, 16);
  const auto good = random_observation(coords, 1, 20'000, torch::kDouble, 14);
  const Visibilities wrong(good.baselines(), good.data(), good.weights() * 4);  // sigma is underestimated by 2
  std::vector<std::string> warnings;
  const auto before = set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings.emplace_back(text);
  });
  CHECK_THROWS_WITH(DataAverager(coords, wrong).to_dataset(), ContainsSubstring("underestimated by a factor 1.9"));
  CHECK(warnings.empty());
  CHECK_NOTHROW(DataAverager(coords, wrong, DataAveragerOptions().scatter_check(ScatterCheck::warn)).to_dataset());
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("1.2") && ContainsSubstring("scale the weights by 0.2"));
  CHECK_NOTHROW(DataAverager(coords, wrong, unchecked()).to_dataset());
  CHECK_NOTHROW(DataAverager(coords, good).to_dataset());
  CHECK(warnings.size() == 1);
  set_log_sink(before);
}

TEST_CASE("gridding refuses what it cannot do", "[gridding][quick]") {
  const GridCoords coords(0.05, 16);
  const auto visibilities = random_observation(coords, 2, 10, torch::kDouble, 15);
  const auto with_map = [&](ChannelMap map) { DataAverager(coords, visibilities, unchecked().channel_map(std::move(map))); };
  CHECK_THROWS_AS(with_map({}), ValueError);
  CHECK_THROWS_AS(with_map({{{0}, {}}}), ValueError);
  CHECK_THROWS_AS(with_map({{{0, 2}}}), ValueError);
  CHECK_THROWS_AS(with_map({{{-1}}}), ValueError);
  CHECK_THROWS_AS(DataAverager(GridCoords(1e-5, 65538), visibilities), ValueError);
  CHECK_THROWS_AS(DataAverager(GridCoords(0.5, 16), visibilities), DataError);
}

TEST_CASE("few samples on the widest grid lie in the cells that sorting finds", "[gridding][quick]") {
  const GridCoords coords(0.001, 65536);
  for (const std::int64_t samples : {1, 140, 3000}) {
    const auto visibilities = random_observation(coords, 1, samples, torch::kDouble, 21);
    check_by_sorting(coords, visibilities);
    // Some of them near each other, and those at the edges of the plane.
    const auto& baselines = visibilities.baselines();
    const auto factor = torch::linspace(0, 1, samples, torch::kDouble).square();
    check_by_sorting(coords, {Baselines::in_lambda(baselines.u() * factor, baselines.v() * factor), visibilities.data(),
                              visibilities.weights()});
    const auto edge = [&](const Tensor& x) { return x.sign() * (coords.max_uv() * (1 - 1e-15)); };
    check_by_sorting(
        coords, {Baselines::in_lambda(edge(baselines.u()), edge(baselines.v())), visibilities.data(), visibilities.weights()});
  }
}

TEST_CASE("more pixels than cells have numbers are refused before cells are visited", "[gridding][quick]") {
  const auto u = torch::zeros({3}, torch::kDouble);
  std::atomic<int> visited = 0;
  const auto count = [&](std::size_t) { ++visited; };
  CHECK_THROWS_AS(gridding::visit_cells(GridCoords(0.001, 65538), u, u, count), ValueError);
  CHECK(visited == 0);
  gridding::visit_cells(GridCoords(0.001, 65536), u, u, count);
  CHECK(visited == 3);
}
