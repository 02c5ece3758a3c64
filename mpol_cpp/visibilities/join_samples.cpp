#include <mpol_cpp/visibilities/join_samples.h>

#include <algorithm>
#include <functional>

#include <ATen/ops/cat.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol {
namespace {

using Values = std::function<Tensor(const Visibilities&)>;

torch::Dtype widest(const std::vector<Visibilities>& blocks, const Values& values) {
  auto dtype = values(blocks.front()).scalar_type();
  for (const auto& block : blocks) dtype = c10::promoteTypes(dtype, values(block).scalar_type());
  return dtype;
}

/// (samples of all blocks) in their widest dtype.
Tensor all_of(const std::vector<Visibilities>& blocks, const Values& values) {
  const auto dtype = widest(blocks, values);
  std::vector<Tensor> parts;
  parts.reserve(blocks.size());
  for (const auto& block : blocks) parts.push_back(values(block).flatten().to(torch::kCPU, dtype));
  return at::cat(parts);
}

Baselines joined_baselines(const std::vector<Visibilities>& blocks) {
  const bool in_wavelengths = std::none_of(blocks.begin(), blocks.end(),
                                           [](const Visibilities& block) { return block.baselines().frequencies().defined(); });
  const auto dtype = in_wavelengths ? widest(blocks, [](const Visibilities& block) { return block.baselines().u(); })
                                    : torch::Dtype(torch::kFloat64);
  std::vector<Tensor> u, v;
  for (const auto& block : blocks) {
    for (std::int64_t channel = 0; channel < block.nchan(); ++channel) {
      const auto [own_u, own_v] = block.baselines().channel(channel);
      u.push_back(own_u.to(dtype));
      v.push_back(own_v.to(dtype));
    }
  }
  return Baselines::in_lambda(at::cat(u), at::cat(v));
}

/// Blocks whose phase centre is not known pass.
void check_phase_centres(const std::vector<Visibilities>& blocks) {
  constexpr double tolerance = 1e-9;  // radian
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto &a = blocks[j].observation(), &b = blocks[i].observation();
      const auto distance = phase_centre_distance(a, b);
      if (!distance || *distance <= tolerance) continue;
      throw DataError(
          fmt::format("the blocks have different phase centres: {} and {}, {:.4g} arcsec apart; shift their "
                      "visibilities to one centre first, or image them one by one",
                      phase_centre_text(a), phase_centre_text(b), *distance / units::arcsec));
    }
  }
}

/// What the first block says, and the phase centre of the first that knows all of it.
Observation joined_observation(const std::vector<Visibilities>& blocks) {
  auto observation = blocks.front().observation();
  for (const auto& block : blocks) {
    const auto& own = block.observation();
    if (!own.right_ascension || !own.declination) continue;
    observation.right_ascension = own.right_ascension;
    observation.declination = own.declination;
    break;
  }
  return observation;
}

}  // namespace

Visibilities join_samples(const std::vector<Visibilities>& blocks) {
  if (blocks.empty()) throw ValueError("there are no blocks to join; at least one is needed");
  check_phase_centres(blocks);
  Visibilities joined(joined_baselines(blocks), all_of(blocks, [](const Visibilities& block) { return block.data(); }),
                      all_of(blocks, [](const Visibilities& block) { return block.weights(); }));
  const bool known =
      std::all_of(blocks.begin(), blocks.end(), [](const Visibilities& block) { return block.frequencies().defined(); });
  if (known) {
    joined.set_frequencies(
        all_of(blocks, [](const Visibilities& block) { return block.frequencies(); }).mean(0, /*keepdim=*/true));
  }
  joined.set_observation(joined_observation(blocks));
  return joined;
}

}  // namespace mpol
