#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/baselines.h>

#include "random.h"

namespace mpol::testing {

/// Points at u = 0, v = 0, +-Nyquist, on cells of the fine grid, on borders of its tiles, and `random` ones that fill the plane.
inline Baselines edge_baselines(const GridCoords& coords, std::int64_t random, std::uint64_t seed) {
  const double limit = 0.5 / coords.dl(), fine = 0.5 * coords.du();
  const std::vector<double> special{0, limit, -limit, fine, -fine, 0.5 * fine, -0.5 * fine, 1e-9 * fine, 0.25 * limit};
  std::vector<double> u, v;
  for (const double a : special) {
    for (const double b : special) {
      u.push_back(a);
      v.push_back(b);
    }
  }
  for (std::int64_t cell = -coords.npix(); cell <= coords.npix(); cell += std::max<std::int64_t>(coords.npix() / 32, 1)) {
    u.push_back(static_cast<double>(cell) * fine);
    v.push_back(static_cast<double>(-cell) * fine);
  }
  const auto anywhere = [&](std::uint64_t s) { return (uniform({random}, torch::kFloat64, s) * 2 - 1) * limit; };
  return Baselines::in_lambda(at::cat({at::tensor(u, torch::kFloat64), anywhere(seed)}),
                              at::cat({at::tensor(v, torch::kFloat64), anywhere(seed + 1)}));
}

/// So many samples within a fraction of a cell of the fine grid: they are worked off as one run.
inline Baselines crowd(const GridCoords& coords, std::int64_t count, std::uint64_t seed) {
  const auto near = [&](double cells, std::uint64_t s) {
    return (uniform({count}, torch::kFloat64, s) * 0.9 + cells) * (0.5 * coords.du());
  };
  return Baselines::in_lambda(near(-3.4, seed), near(1.6, seed + 1));
}

}  // namespace mpol::testing
