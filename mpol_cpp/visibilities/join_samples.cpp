#include <mpol_cpp/visibilities/join_samples.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/ops/cat.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

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
  const Observation* first = nullptr;
  for (const auto& block : blocks) {
    const auto& centre = block.observation();
    if (!centre.right_ascension || !centre.declination) continue;
    if (first == nullptr) first = &centre;
    const double turn = std::remainder(*centre.right_ascension - *first->right_ascension, 2 * units::pi);
    const double east = turn * std::cos(*first->declination), north = *centre.declination - *first->declination;
    if (std::hypot(east, north) <= tolerance) continue;
    throw DataError(fmt::format(
        "the blocks have different phase centres: RA {:.9g}, Dec {:.9g} and RA {:.9g}, Dec {:.9g} degrees, {:.4g} arcsec apart; "
        "shift their visibilities to one centre first, or image them one by one",
        *first->right_ascension / units::degree, *first->declination / units::degree, *centre.right_ascension / units::degree,
        *centre.declination / units::degree, std::hypot(east, north) / units::arcsec));
  }
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
  joined.set_observation(blocks.front().observation());
  return joined;
}

}  // namespace mpol
