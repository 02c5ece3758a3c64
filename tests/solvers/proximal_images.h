#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ops/empty_like.h>

#include "random.h"

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

}  // namespace mpol::testing
