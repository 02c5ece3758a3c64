#include "catch.h"

#include <limits>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/device/move.h>
#include <mpol_cpp/visibilities/visibilities.h>

#include "../compare.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

template <typename T>
Visibilities some_visibilities(std::int64_t nchan, std::int64_t nvis, Baselines baselines) {
  return {std::move(baselines), normal({nchan, nvis}, complex_dtype_of<T>(), 3),
          normal({nchan, nvis}, dtype_of<T>(), 4).abs() + 0.1};
}

template <typename T>
Baselines shared_baselines(std::int64_t nvis) {
  return Baselines::in_lambda(normal({nvis}, dtype_of<T>(), 1) * 1e5, normal({nvis}, dtype_of<T>(), 2) * 1e5);
}

/// Blocks that are written into the middle of tensors are those that are returned, and nothing beside them changes.
void check_written_blocks(const Baselines& baselines, std::int64_t channel) {
  auto u = torch::full({20}, -1, torch::kFloat64), v = torch::full({20}, -2, torch::kFloat64);
  const auto [block_u, block_v] = baselines.block(channel, 10, 25);
  baselines.write_block(channel, 10, 25, u.narrow(0, 3, 15), v.narrow(0, 3, 15));
  CHECK(same(u.narrow(0, 3, 15), block_u));
  CHECK(same(v.narrow(0, 3, 15), block_v));
  for (const auto& [begin, end] : {std::pair{0, 3}, std::pair{18, 20}}) {
    CHECK((u.slice(0, begin, end) == -1).all().item<bool>());
    CHECK((v.slice(0, begin, end) == -2).all().item<bool>());
  }
  CHECK_THROWS_AS(baselines.write_block(channel, 0, baselines.nvis() + 1, u, v), ValueError);
}

}  // namespace

TEMPLATE_TEST_CASE("baselines keep their dtype and widen block by block", "[visibilities][quick]", float, double) {
  const auto u = normal({3, 100}, dtype_of<TestType>(), 1), v = normal({3, 100}, dtype_of<TestType>(), 2);
  const auto baselines = Baselines::in_lambda(u, v);
  CHECK(same(baselines.u(), u));
  CHECK(baselines.nchan() == 3);
  CHECK(baselines.nvis() == 100);
  CHECK_FALSE(baselines.shared());
  const auto [block_u, block_v] = baselines.block(2, 10, 25);
  CHECK(same(block_u, u[2].slice(0, 10, 25).to(torch::kFloat64)));
  CHECK(same(block_v, v[2].slice(0, 10, 25).to(torch::kFloat64)));
  CHECK(baselines.max_abs_u() == u.abs().max().template item<double>());
  CHECK(baselines.max_abs_v() == v.abs().max().template item<double>());
  CHECK(baselines.memory_bytes() == static_cast<std::int64_t>(2 * u.nbytes()));
  CHECK(baselines.block(0, 5, 5).first.numel() == 0);
  check_written_blocks(baselines, 2);
}

TEMPLATE_TEST_CASE("baselines in metres are those of each frequency in wavelengths", "[visibilities][quick]", float, double) {
  const auto u = normal({40}, dtype_of<TestType>(), 1) * 100, v = normal({40}, dtype_of<TestType>(), 2) * 100;
  const auto frequencies = at::tensor({1e11, 2e11, 1.5e11}, torch::kFloat64);
  check_written_blocks(Baselines::in_metres(u, v, frequencies), 1);
  const auto metres = Baselines::in_metres(u, v, frequencies);
  CHECK(metres.nchan() == 3);
  double largest = 0;
  for (std::int64_t c = 0; c < 3; ++c) {
    const auto expected = u.to(torch::kFloat64) * (frequencies[c].template item<double>() / units::speed_of_light);
    CHECK(relative_error(metres.channel(c).first, expected) < 1e-15);
    largest = std::max(largest, metres.channel(c).first.abs().max().template item<double>());
  }
  CHECK(metres.max_abs_u() == Approx(largest).epsilon(1e-15));
  const auto chosen = metres.select_channels({2, 0});
  CHECK(same(chosen.channel(0).first, metres.channel(2).first));
  CHECK(chosen.u().data_ptr() == metres.u().data_ptr());
}

TEST_CASE("selected channels share storage where they follow each other", "[visibilities][quick]") {
  const auto baselines = Baselines::in_lambda(normal({5, 20}, torch::kFloat32, 1), normal({5, 20}, torch::kFloat32, 2));
  const auto visibilities = some_visibilities<float>(5, 20, baselines);
  const auto neighbors = visibilities.select_channels({1, 2, 3});
  CHECK(neighbors.data().data_ptr() == visibilities.data()[1].data_ptr());
  CHECK(same(neighbors.baselines().u(), baselines.u().narrow(0, 1, 3)));
  const auto scattered = visibilities.select_channels({4, 0});
  CHECK(same(scattered.data()[0], visibilities.data()[4]));
  CHECK(same(scattered.weights()[1], visibilities.weights()[0]));
  CHECK(same(scattered.baselines().channel(0).second, baselines.channel(4).second));
  CHECK_THROWS_WITH(visibilities.select_channels({5}), ContainsSubstring("channel 5 is not there; the channels are 0 to 4"));
  CHECK_THROWS_AS(visibilities.select_channels({-1}), ValueError);
  CHECK_THROWS_AS(visibilities.select_channels({}), ValueError);
}

TEMPLATE_TEST_CASE("visibilities keep dtypes, and (nvis) is one channel", "[visibilities][quick]", float, double) {
  const auto data = normal({30}, complex_dtype_of<TestType>(), 3);
  const auto weights = normal({30}, dtype_of<TestType>(), 4).abs() + 0.1;
  const Visibilities visibilities(shared_baselines<TestType>(30), data, weights);
  CHECK(visibilities.nchan() == 1);
  CHECK(same(visibilities.data(), data.unsqueeze(0)));
  CHECK(same(visibilities.weights(), weights.unsqueeze(0)));
  CHECK(visibilities.memory_bytes() == static_cast<std::int64_t>(5 * weights.nbytes()));
  const Visibilities conjugated(shared_baselines<TestType>(30), data.conj(), weights);
  CHECK_FALSE(conjugated.data().is_conj());
  CHECK(same(conjugated.data()[0], data.conj().resolve_conj()));
}

TEMPLATE_TEST_CASE("the first bad value is named wherever it stands", "[visibilities][quick]", float, double) {
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  const std::int64_t nvis = 70000;  // more than the block in which values are checked
  const auto baselines = shared_baselines<TestType>(nvis);
  const auto data = normal({2, nvis}, complex_dtype_of<TestType>(), 3);
  const auto weights = at::ones({2, nvis}, dtype_of<TestType>());
  for (const std::int64_t where : {std::int64_t{0}, std::int64_t{65535}, std::int64_t{65536}, nvis - 1}) {
    for (const double bad : {nan, -nan, infinity, -infinity}) {
      auto broken = data.clone();
      at::view_as_real(broken).index_put_({1, where, 1}, bad);
      CHECK_THROWS_WITH(Visibilities(baselines, broken, weights), ContainsSubstring(fmt::format("data[1, {}] is ", where)));
      auto u = baselines.u().clone();
      u.index_put_({where}, bad);
      CHECK_THROWS_WITH(Baselines::in_lambda(u, baselines.v()), ContainsSubstring(fmt::format("u[{}] is ", where)));
    }
    for (const double bad : {nan, infinity, -infinity, 0.0, -0.0, -1.0}) {
      auto broken = weights.clone();
      broken.index_put_({1, where}, bad);
      CHECK_THROWS_WITH(Visibilities(baselines, data, broken), ContainsSubstring(fmt::format("weight[1, {}] is ", where)));
    }
  }
  auto tiny = weights.clone();
  tiny.fill_(std::numeric_limits<TestType>::denorm_min());
  CHECK_NOTHROW(Visibilities(baselines, data, tiny));
}

TEST_CASE("shapes and kinds that do not go together are refused", "[visibilities][quick]") {
  const auto baselines = shared_baselines<double>(10);
  const auto data = normal({2, 10}, torch::kComplexDouble, 3);
  const auto weights = at::ones({2, 10}, torch::kFloat64);
  CHECK_THROWS_WITH(Visibilities(baselines, data, weights.narrow(1, 0, 9)),
                    ContainsSubstring("data has shape (2, 10) and weight (2, 9)"));
  CHECK_THROWS_AS(Visibilities(shared_baselines<double>(9), data, weights), ShapeError);
  CHECK_THROWS_AS(Visibilities(baselines, weights, weights), ShapeError);
  CHECK_THROWS_AS(Visibilities(baselines, data, at::ones({2, 10}, torch::kInt64)), ShapeError);
  CHECK_THROWS_AS(Visibilities(baselines, data.unsqueeze(0), weights.unsqueeze(0)), ShapeError);
  CHECK_THROWS_AS(Visibilities(Baselines::in_lambda(at::ones({3, 10}), at::ones({3, 10})), data, weights), ShapeError);
  CHECK_THROWS_AS(Baselines::in_lambda(at::ones({3}), at::ones({4})), ShapeError);
  CHECK_THROWS_AS(Baselines::in_lambda(at::ones({}), at::ones({})), ShapeError);
  CHECK_THROWS_AS(Baselines::in_lambda(at::ones({3}, torch::kInt64), at::ones({3}, torch::kInt64)), ShapeError);
  CHECK_THROWS_AS(Baselines::in_lambda(at::empty({0}), at::empty({0})), DataError);
  CHECK_THROWS_AS(Baselines::in_metres(at::ones({2, 3}), at::ones({2, 3}), at::ones({2})), ShapeError);
  CHECK_THROWS_AS(Baselines::in_metres(at::ones({3}), at::ones({3}), Tensor()), ShapeError);
  CHECK_THROWS_AS(Baselines::in_metres(at::ones({3}), at::ones({3}), at::tensor({1e11, 0.0})), DataError);
  CHECK_THROWS_AS(baselines.block(0, 5, 11), ValueError);
  CHECK_THROWS_AS(baselines.block(-1, 0, 1), ValueError);
}

TEST_CASE("frequencies belong to the channels", "[visibilities][quick]") {
  auto visibilities = some_visibilities<float>(2, 10, shared_baselines<float>(10));
  CHECK_FALSE(visibilities.frequencies().defined());
  visibilities.set_frequencies(at::tensor({1e11, 2e11}, torch::kFloat64));
  CHECK(visibilities.select_channels({1}).frequencies().item<double>() == 2e11);
  CHECK_THROWS_AS(visibilities.set_frequencies(at::tensor({1e11})), ShapeError);
  CHECK_THROWS_AS(visibilities.set_frequencies(at::tensor({1e11, -1.0})), DataError);
  auto metres = some_visibilities<float>(
      2, 10, Baselines::in_metres(at::ones({10}), at::ones({10}), at::tensor({1e11, 2e11}, torch::kFloat64)));
  CHECK(same(metres.frequencies(), visibilities.frequencies()));
  CHECK_THROWS_AS(metres.set_frequencies(at::tensor({1e11, 3e11}, torch::kFloat64)), ValueError);
}

TEST_CASE("channel maps of a cube and of a continuum image", "[visibilities][quick]") {
  CHECK(ChannelMap::cube(3).sources == std::vector<std::vector<std::int64_t>>{{0}, {1}, {2}});
  CHECK(ChannelMap::continuum(3).sources == std::vector<std::vector<std::int64_t>>{{0, 1, 2}});
  CHECK(ChannelMap::continuum(3).nchan() == 1);
  CHECK_NOTHROW(ChannelMap::continuum(3).check_sources(3));
  CHECK_THROWS_WITH(ChannelMap::cube(3).check_sources(2),
                    ContainsSubstring("image channel 2 wants data channel 2, but the data have channels 0 to 1"));
  CHECK_THROWS_AS((ChannelMap{{{0}, {-1}}}.check_sources(2)), ValueError);
}

TEMPLATE_TEST_CASE("a block holds the samples of a channel, widened", "[visibilities][quick]", float, double) {
  const auto frequencies = at::tensor({1e11, 2e11}, torch::kFloat64);
  const auto metres =
      Baselines::in_metres(normal({10}, dtype_of<TestType>(), 1), normal({10}, dtype_of<TestType>(), 2), frequencies);
  const auto visibilities = some_visibilities<TestType>(2, 10, metres);
  const auto block = visibilities.block(1, 3, 8);
  CHECK(same(block.u, metres.block(1, 3, 8).first));
  CHECK(same(block.v, metres.block(1, 3, 8).second));
  CHECK(same(block.data, visibilities.data()[1].slice(0, 3, 8).to(torch::kComplexDouble)));
  CHECK(same(block.weights, visibilities.weights()[1].slice(0, 3, 8).to(torch::kFloat64)));
  CHECK_THROWS_AS(visibilities.block(2, 0, 1), ValueError);
  CHECK_THROWS_AS(visibilities.block(0, 5, 11), ValueError);
  CHECK_THROWS_AS(some_visibilities<TestType>(2, 10, shared_baselines<TestType>(10)).block(2, 0, 1), ValueError);
}

TEST_CASE("visibilities move and are cast; their baselines stay on the host in their own dtype", "[visibilities][quick]") {
  const auto held = some_visibilities<double>(2, 10, shared_baselines<double>(10));
  auto single = held;
  move_to(single, torch::kCPU, torch::kFloat32);
  CHECK(same(single.data(), held.data().to(torch::kComplexFloat)));
  CHECK(same(single.weights(), held.weights().to(torch::kFloat32)));
  CHECK(single.baselines().u().scalar_type() == torch::kFloat64);
  CHECK(held.data().scalar_type() == torch::kComplexDouble);
  auto elsewhere = held;  // meta tensors stand in for a GPU
  move_to(elsewhere, torch::kMeta);
  CHECK(device_of(elsewhere) == torch::Device(torch::kMeta));
  CHECK(device_of(held) == torch::Device(torch::kCPU));
  CHECK(elsewhere.baselines().u().is_cpu());
  CHECK(elsewhere.nvis() == 10);
  std::vector blocks{held, single};
  move_to(blocks, torch::kMeta);
  CHECK(blocks[1].weights().is_meta());
}

TEST_CASE("selected samples are those of the whole, in all channels", "[visibilities][quick]") {
  const auto u = uniform({50}, torch::kFloat64, 1), v = uniform({50}, torch::kFloat64, 2);
  const auto data = normal({2, 50}, torch::kComplexDouble, 3), weights = uniform({2, 50}, torch::kFloat64, 4) + 1;
  const auto frequencies = torch::tensor({1e9, 2e9}, torch::kFloat64);
  const auto samples = torch::tensor({7, 3, 49, 7}, torch::kInt64);
  for (const auto& baselines : {Baselines::in_lambda(u, v), Baselines::in_metres(u, v, frequencies),
                                Baselines::in_lambda(torch::stack({u, v}), torch::stack({v, u}))}) {
    Visibilities all(baselines, data, weights);
    all.set_frequencies(frequencies);
    const auto some = all.select(samples);
    REQUIRE(some.nvis() == 4);
    CHECK(torch::equal(some.frequencies(), frequencies));
    for (std::int64_t channel = 0; channel < 2; ++channel) {
      const auto whole = all.block(channel, 0, 50), part = some.block(channel, 0, 4);
      CHECK(torch::equal(part.u, whole.u.index_select(0, samples)));
      CHECK(torch::equal(part.v, whole.v.index_select(0, samples)));
      CHECK(torch::equal(part.data, whole.data.index_select(0, samples)));
      CHECK(torch::equal(part.weights, whole.weights.index_select(0, samples)));
    }
    CHECK(baselines.digest() != some.baselines().digest());
    CHECK(baselines.digest() == baselines.select(torch::arange(50)).digest());
  }
  const Visibilities all(Baselines::in_lambda(u, v), data, weights);
  CHECK_THROWS_WITH(all.select(torch::tensor({3, 50}, torch::kInt64)),
                    ContainsSubstring("sample 50") && ContainsSubstring("0 to 49"));
  CHECK_THROWS_AS(all.select(torch::tensor({-1}, torch::kInt64)), ValueError);
  CHECK_THROWS_AS(all.select(torch::empty({0}, torch::kInt64)), ValueError);
  CHECK_THROWS_AS(all.select(torch::ones({2})), ShapeError);
}
