#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/visibilities/visibilities.h>

#include "random.h"

namespace mpol::testing {

/// For data whose weights are not those of their scatter.
inline DataAveragerOptions unchecked() { return DataAveragerOptions().scatter_check(ScatterCheck::off); }

/// Samples all over the grid, each channel at its own u, v, of a source of 1 Jy with noise as the weights say.
inline Visibilities random_observation(const GridCoords& coords, std::int64_t nchan, std::int64_t nvis, torch::Dtype dtype,
                                       std::uint64_t seed) {
  const auto scale = 0.999 * coords.max_uv();
  const auto uv = (uniform({2, nchan, nvis}, torch::kDouble, seed) * 2 - 1) * scale;
  const auto weights = uniform({nchan, nvis}, torch::kDouble, seed + 1000) * 50 + 5;
  const auto noise = normal({nchan, nvis}, torch::kComplexDouble, seed + 2000) * std::sqrt(2.0) / weights.sqrt();
  const auto part = [&](std::int64_t index) { return (nchan == 1 ? uv[index][0] : uv[index]).to(dtype); };
  return {Baselines::in_lambda(part(0), part(1)), (noise + 1.0).to(c10::toComplexType(dtype)), weights.to(dtype)};
}

}  // namespace mpol::testing
