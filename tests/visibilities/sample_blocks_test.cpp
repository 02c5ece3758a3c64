#include "../catch.h"

#include <cmath>

#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/visibilities/sample_blocks.h>

#include "../compare.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

Tensor numbers(std::vector<std::int64_t> values) { return torch::tensor(values, torch::kInt64); }

}  // namespace

TEST_CASE("blocks of numbers, and of pairs of them, are those that occur", "[visibilities][quick]") {
  const auto windows = SampleBlocks::of_numbers(numbers({7, 3, 3, 7, 9}), "window");
  CHECK(windows.names == std::vector<std::string>{"window 3", "window 7", "window 9"});
  CHECK(same(windows.indices, numbers({1, 0, 0, 1, 2})));
  const auto both = windows.crossed(SampleBlocks::of_numbers(numbers({0, 0, 1, 0, 1}), "observation"));
  CHECK(both.names == std::vector<std::string>{"window 3 observation 0", "window 3 observation 1", "window 7 observation 0",
                                               "window 9 observation 1"});
  CHECK(same(both.indices, numbers({2, 0, 1, 2, 3})));
  CHECK(same(both.of(0, 1, 3), numbers({0, 1})));
}

TEST_CASE("blocks of channels spread over those of samples", "[visibilities][quick]") {
  const auto channels = SampleBlocks::of_numbers(numbers({0, 1}).unsqueeze(1).expand({2, 3}), "channel");
  const auto both = SampleBlocks::of_numbers(numbers({4, 4, 5}), "window").crossed(channels);
  CHECK(both.size() == 4);
  CHECK(both.names[1] == "window 4 channel 1");
  CHECK(same(both.of(1, 0, 3), numbers({1, 1, 3})));
  CHECK_NOTHROW(both.check(2, 3));
  CHECK_THROWS_AS(both.check(3, 3), ShapeError);
  CHECK_THROWS_AS(both.check(2, 4), ShapeError);
  CHECK_THROWS_AS(both.of(0, 2, 5), ShapeError);
  CHECK_THROWS_AS(both.crossed(SampleBlocks::of_numbers(numbers({1, 2}), "file")), ShapeError);
}

TEST_CASE("stretches of time are in order, split no moment, and have about the same size", "[visibilities][quick]") {
  const auto moments = (uniform({1000}, torch::kFloat64, 3) * 100).floor();
  const auto stretches = stretches_of_time(moments, 10);
  CHECK(stretches.min().item<std::int64_t>() == 0);
  CHECK(stretches.max().item<std::int64_t>() == 9);
  for (std::int64_t label = 0; label < 10; ++label) {
    const auto own = moments.index_select(0, (stretches == label).nonzero().squeeze(1));
    const auto others = moments.index_select(0, (stretches > label).nonzero().squeeze(1));
    CHECK(own.numel() > 60);
    CHECK(own.numel() < 140);
    if (others.numel() > 0) CHECK(own.max().item<double>() < others.min().item<double>());
  }
  CHECK(stretches_of_time(torch::zeros({7}, torch::kFloat64), 4).max().item<std::int64_t>() == 0);
  CHECK_THROWS_AS(stretches_of_time(moments, 0), ValueError);
  CHECK_THROWS_AS(stretches_of_time(torch::full({3}, NAN, torch::kFloat64), 2), DataError);
  CHECK_THROWS_AS(stretches_of_time(torch::zeros({2, 2}, torch::kFloat64), 2), ShapeError);
}
