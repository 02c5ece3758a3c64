#pragma once

#include <cmath>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/calibration/block_calibration.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/simulation/direct_visibilities.h>
#include <mpol_cpp/visibilities/visibilities.h>

#include "../random.h"

namespace mpol::testing {

inline const GridCoords gain_grid(0.05, 32);

/// An elongated source, in the middle of which there is nothing special.
inline Tensor gain_sky() {
  const auto x = gain_grid.sky_x() - 0.1, y = gain_grid.sky_y() + 0.05;
  return ((-(x.square() / (2 * 0.16 * 0.16) + y.square() / (2 * 0.09 * 0.09))).exp() * 20).unsqueeze(0);
}

/// Data with faults, one block after the other.
struct FaultyData {
  Visibilities visibilities;
  SampleBlocks blocks;
};

/// Blocks of `nvis` samples each, observed with these gains. @param snr  of the flux in a sample
inline FaultyData faulty_data(const std::vector<BlockGain>& faults, std::int64_t nvis, std::uint64_t seed,
                              torch::Dtype dtype = torch::kFloat64, double noise = 1) {
  std::vector<Tensor> us, vs, data, labels;
  const double weight = 300, longest = 0.8 * gain_grid.max_uv();
  std::vector<std::string> names;
  for (std::size_t b = 0; b < faults.size(); ++b) {
    const auto& fault = faults[b];
    // More samples on short baselines, as arrays have.
    const auto radius = uniform({nvis}, torch::kFloat64, seed + 10 * b).sqrt() * longest;
    const auto angle = uniform({nvis}, torch::kFloat64, seed + 10 * b + 1) * (2 * units::pi);
    const auto u = radius * angle.cos(), v = radius * angle.sin();
    const auto turn = (u * fault.east + v * fault.north) * (-2 * units::pi * units::arcsec);
    const auto model = direct_visibilities(gain_sky(), gain_grid, Baselines::in_lambda(u, v), 1)[0];
    const auto errors = normal({nvis}, torch::kComplexDouble, seed + 10 * b + 2) * std::sqrt(2 / (weight * fault.weight_scale));
    us.push_back(u), vs.push_back(v);
    data.push_back(model * at::polar(torch::full_like(turn, fault.amplitude), turn) + errors * noise);
    labels.push_back(torch::full({nvis}, static_cast<std::int64_t>(b), torch::kInt64));
    names.push_back("window " + std::to_string(b));
  }
  const auto samples = at::cat(data).unsqueeze(0).to(c10::toComplexType(dtype));
  return {Visibilities(Baselines::in_lambda(at::cat(us), at::cat(vs)), samples,
                       torch::full(samples.sizes(), weight, torch::TensorOptions(dtype))),
          SampleBlocks{at::cat(labels), names}};
}

}  // namespace mpol::testing
