#include "catch.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/fourier/nufft.h>

#include "compare.h"
#include "golden.h"
#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

Visibilities loose_visibilities(const GridCoords& coords, std::int64_t nchan, std::int64_t nvis, std::uint64_t seed) {
  const auto spread = [&](std::uint64_t s) {
    return (uniform({nchan, nvis}, torch::kFloat64, s) * 2 - 1) * (0.99 * coords.max_uv());
  };
  return {Baselines::in_lambda(spread(seed), spread(seed + 1)), normal({nchan, nvis}, torch::kComplexDouble, seed + 2),
          uniform({nchan, nvis}, torch::kFloat64, seed + 3) + 0.5};
}

Visibilities golden_visibilities(const Golden& dataset) {
  return {Baselines::in_lambda(dataset("in_uu"), dataset("in_vv")), dataset("in_data"), dataset("in_weight")};
}

}  // namespace

TEST_CASE("the normal operator equals MPoL's chi squared by direct sums", "[fourier][normal][quick]") {
  const Golden dataset("dataset"), golden("normal_operator");
  const auto coords = dataset_coords();
  const auto normal = NormalOperator::of(coords, golden_visibilities(dataset), ChannelMap::cube(2));
  CHECK(relative_error(normal.constant(), golden("out_c")) < 1e-12);
  CHECK(relative_error(normal.dirty(), packed_to_sky(golden("out_b_packed"))) < 1e-11);
  auto unused = torch::empty_like(dataset("in_image_sky"));
  const auto of_nothing = normal.value_and_gradient(torch::zeros_like(unused), unused, Accumulate::overwrite);
  CHECK(relative_error(of_nothing, golden("out_chi2_of_zero").sum()) < 1e-12);
  const auto t = golden("out_t").flip({-1}).roll({1}, {-1});  // columns of the sky run to the West
  const auto kernel = at::real(at::fft_rfft2(t)).transpose(-2, -1) / static_cast<double>(t.size(-1) * t.size(-1));
  CHECK(relative_error(normal.kernel(), kernel) < 1e-11);
  for (const auto& [name, image] : {std::pair{"a", dataset("in_image_sky")}, {"b", packed_to_sky(golden("in_image_b_packed"))}}) {
    auto gradient = torch::empty_like(image);
    const auto value = normal.value_and_gradient(image, gradient, Accumulate::overwrite);
    CHECK(relative_error(value, golden(std::string("out_chi2_") + name).sum()) < 1e-11);
    CHECK(relative_error(gradient, packed_to_sky(golden(std::string("out_gradient_") + name + "_packed"))) < 1e-11);
  }
}

TEST_CASE("the normal operator and the nonuniform transform give the same chi squared", "[fourier][normal][quick]") {
  const auto npix = GENERATE(2, 4, 6, 8, 30, 64);
  const GridCoords coords(0.03, npix);
  const auto data = loose_visibilities(coords, 2, 400, 1);
  const auto normal = NormalOperator::of(coords, data, ChannelMap::cube(2));
  const auto nufft = Nufft(coords, data.baselines(), 2, NufftOptions{1e-13});
  const auto image = random_image(coords, 2, torch::kFloat64, 5) / (coords.cell_area() * static_cast<double>(npix));
  const auto residual = nufft->forward(image) - data.data();
  auto gradient = torch::empty_like(image);
  const auto value = normal.value_and_gradient(image, gradient, Accumulate::overwrite);
  CHECK(relative_error(value, (at::view_as_real(residual).square().sum({-1}) * data.weights()).sum()) < 1e-11);
  const auto expected = 2 * nufft->adjoint(residual * data.weights());
  CHECK(relative_error(gradient, expected) < 1e-11);
  normal.value_and_gradient(image, gradient, Accumulate::add);
  CHECK(relative_error(gradient, 2 * expected) < 1e-11);
}

TEMPLATE_TEST_CASE("the normal operator is symmetric and positive", "[fourier][normal][quick]", float, double) {
  const GridCoords coords(0.03, 30);
  const auto normal = NormalOperator::of(coords, loose_visibilities(coords, 1, 50, 7), ChannelMap::cube(1));
  const auto x = mpol::testing::normal({1, 30, 30}, dtype_of<TestType>(), 11);
  const auto y = mpol::testing::normal({1, 30, 30}, dtype_of<TestType>(), 12);
  CHECK(adjoint_error(normal.apply(x), y, x, normal.apply(y)) < tolerance<TestType>(1e-13, 1e-6));
  CHECK(inner_product(x, normal.apply(x)) > 0);
}

TEST_CASE("normal operators of blocks of data add and subtract", "[fourier][normal][quick]") {
  const GridCoords coords(0.03, 16);
  const auto first = loose_visibilities(coords, 1, 60, 13), second = loose_visibilities(coords, 1, 90, 17);
  const auto a = NormalOperator::of(coords, first, ChannelMap::cube(1));
  const auto b = NormalOperator::of(coords, second, ChannelMap::cube(1));
  auto both = NormalOperator::of(coords, first, ChannelMap::cube(1));
  const auto before = both;
  both.add(second, ChannelMap::cube(1));
  CHECK(same(before.kernel(), a.kernel()));  // copies are independent

  const auto sum = a + b, difference = both - b;
  CHECK(relative_error(sum.kernel(), both.kernel()) < 1e-13);
  CHECK(relative_error(sum.dirty(), both.dirty()) < 1e-13);
  CHECK(relative_error(difference.kernel(), a.kernel()) < 1e-12);
  CHECK(relative_error(difference.dirty(), a.dirty()) < 1e-12);
  CHECK(relative_error(difference.constant(), a.constant()) < 1e-12);
  CHECK(difference.nvis() == 60);
  CHECK(difference.occupied_cells() == a.occupied_cells());
  CHECK(both.nvis() == 150);
}

TEST_CASE("scales of weights scale the normal operator", "[fourier][normal][quick]") {
  const GridCoords coords(0.03, 16);
  const auto data = loose_visibilities(coords, 2, 40, 29);
  const auto factors = at::tensor({0.3, 2.5}, torch::kFloat64);
  const auto own = Visibilities(data.baselines(), data.data(), data.weights() * factors.unsqueeze(1));
  const auto expected = NormalOperator::of(coords, own, ChannelMap::cube(2));
  const auto plain = NormalOperator::of(coords, data, ChannelMap::cube(2));
  auto scaled = plain;
  scaled.scale_weights(factors);
  for (const auto& [got, wanted] : {std::pair(scaled.kernel(), expected.kernel()), std::pair(scaled.dirty(), expected.dirty()),
                                    std::pair(scaled.constant(), expected.constant())}) {
    CHECK(relative_error(got, wanted) < 1e-13);
  }
  CHECK(relative_error((plain * 2 + plain).kernel(), (plain * 3).kernel()) < 1e-14);
  CHECK(scaled.nvis() == plain.nvis());
  CHECK_THROWS_AS(scaled.scale_weights(factors.narrow(0, 0, 1)), ShapeError);
  CHECK_THROWS_AS(scaled *= -1, ValueError);
  CHECK_THROWS_AS(scaled *= std::nan(""), ValueError);
}

TEST_CASE("a normal operator whose kernels lie in files is the same, bit for bit, and leaves no file",
          "[fourier][normal][quick]") {
  const TemporaryFolder folder;
  const GridCoords coords(0.03, 16);
  const auto data = loose_visibilities(coords, 3, 40, 31), more = loose_visibilities(coords, 3, 20, 37);
  const auto channels = ChannelMap::cube(3);
  auto in_memory = NormalOperator::of(coords, data, channels),
       in_files = NormalOperator::of(coords, data, channels, {folder.path()});
  const auto copy = in_files;
  in_memory.add(more, channels), in_files.add(more, channels);
  CHECK(same(in_files.kernel(), in_memory.kernel()));
  CHECK_FALSE(same(copy.kernel(), in_files.kernel()));
  CHECK(same((in_files - copy).kernel(), (in_memory - copy).kernel()));
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK_THROWS_WITH(NormalOperator(coords, 3, {folder.path() / "missing"}), ContainsSubstring("missing cannot hold"));
}

TEST_CASE("a continuum image takes the visibilities of all channels", "[fourier][normal][quick]") {
  const GridCoords coords(0.03, 16);
  const auto data = loose_visibilities(coords, 3, 40, 19);
  const auto together = NormalOperator::of(coords, data, ChannelMap::continuum(3));
  const auto apart = NormalOperator::of(coords, data, ChannelMap::cube(3));
  CHECK(relative_error(together.kernel()[0], apart.kernel().sum(0)) < 1e-13);
  CHECK(relative_error(together.dirty()[0], apart.dirty().sum(0)) < 1e-13);
  CHECK(together.nvis() == 120);
}

TEST_CASE("a normal operator counts visibilities in the cells of the grid's rule, on edges too", "[fourier][normal][quick]") {
  const GridCoords coords(0.03, 30);
  const auto edges = (torch::arange(-14, 14, torch::kFloat64) + 0.5) * coords.du();
  const auto anywhere = [&](std::uint64_t seed) { return (uniform({3000}, torch::kFloat64, seed) - 0.5) * (28 * coords.du()); };
  const auto u = torch::cat({edges, anywhere(41), edges}), v = torch::cat({anywhere(42).narrow(0, 0, 28), anywhere(43), edges});
  const Visibilities data(Baselines::in_lambda(u, v), normal(u.sizes(), torch::kComplexDouble, 44), torch::ones_like(u));
  auto counts = torch::zeros({1, 30, 30}, torch::kInt32);
  for (std::int64_t i = 0; i < u.size(0); ++i) {
    counts[0][coords.uv_cell(v[i].item<double>())][coords.uv_cell(u[i].item<double>())] += 1;
  }
  CHECK(same(NormalOperator::of(coords, data, ChannelMap::cube(1)).cell_counts(), counts));
}

TEST_CASE("a normal operator refuses what does not fit", "[fourier][normal][quick]") {
  const GridCoords coords(0.03, 16), other(0.06, 16);
  const auto data = loose_visibilities(coords, 1, 20, 23);
  CHECK_THROWS_AS(NormalOperator::of(other, data, ChannelMap::cube(1)), DataError);
  CHECK_THROWS_AS(NormalOperator::of(coords, data, ChannelMap::cube(2)), ValueError);
  CHECK_THROWS_AS(NormalOperator(coords, 0), ValueError);
  auto normal = NormalOperator::of(coords, data, ChannelMap::cube(1));
  CHECK_THROWS_AS(normal.add(data, ChannelMap{{{0}, {0}}}), ShapeError);
  CHECK_THROWS_AS(normal += NormalOperator(other, 1), ShapeError);
  CHECK_THROWS_AS(normal.apply(torch::zeros({1, 8, 8}, torch::kFloat64)), ShapeError);
  CHECK_THROWS_AS(normal.apply(torch::zeros({1, 16, 16}, torch::kInt64)), ShapeError);
}
