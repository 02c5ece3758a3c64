#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ops/empty_like.h>

#include <mpol_cpp/core/error.h>

#include "catch.h"
#include "compare.h"
#include "random.h"
#include "threads.h"

namespace mpol::testing {

using Numbers = std::vector<double>;
using Passes = std::vector<std::int64_t>;

/// What a proximal map (TvProximal, CubeProximal) gives. @param numbers  weights or steps of each image
template <typename Map>
Tensor applied(Map& map, const Tensor& q, const Numbers& numbers, const Passes& passes) {
  auto x = at::empty_like(q);
  map.apply(q, numbers, passes, x);
  return x;
}

/// Noise with a middle brighter by `step`, in the first `bright` channels.
inline Tensor noisy_middle(at::IntArrayRef shape, torch::Dtype dtype, std::uint64_t seed, double step, std::int64_t bright) {
  auto images = normal(shape, torch::kFloat64, seed);
  const auto third = shape.back() / 3;
  images.narrow(-1, third, third).narrow(-2, third, third).narrow(-3, 0, bright).add_(step);
  return images.to(dtype);
}

/// Whether a map has the same bits for any number of threads, and goes on from a saved dual.
/// @param make  a new map for q. @param numbers  weights or steps of each image
template <typename Make>
void check_threads_and_saved_dual(const Make& make, const Tensor& q, const Numbers& numbers) {
  const auto run = [&](int threads) {
    const Threads own(threads);
    auto map = make();
    applied(map, q, numbers, {5, 3});
    const auto x = applied(map, q, numbers, {4, 9});
    return std::pair(x, map.dual());
  };
  const auto [x, dual] = run(1);
  for (const int threads : {2, 3}) {
    const auto [other, other_dual] = run(threads);
    CHECK(same(other, x));
    CHECK(same(other_dual, dual));
  }
  auto first = make(), second = make();
  applied(first, q, numbers, {5, 3});
  second.set_dual(first.dual());
  CHECK(same(applied(second, q, numbers, {4, 9}), x));
  CHECK_THROWS_AS(second.set_dual(first.dual().narrow(-1, 1, q.size(-1) - 1)), FileError);
}

}  // namespace mpol::testing
