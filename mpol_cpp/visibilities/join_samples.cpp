#include <mpol_cpp/visibilities/join_samples.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

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

std::int64_t count_samples(const std::vector<Visibilities>& blocks) {
  std::int64_t count = 0;
  for (const auto& block : blocks) count += block.nchan() * block.nvis();
  return count;
}

/// (samples of all blocks) in their widest dtype.
Tensor all_of(const std::vector<Visibilities>& blocks, const Values& values, const ArrayRoom& room) {
  auto all = room.empty({count_samples(blocks)}, widest(blocks, values));
  std::int64_t begin = 0;
  for (const auto& block : blocks) {
    const auto part = values(block).flatten();
    all.narrow(0, begin, part.numel()).copy_(part);
    begin += part.numel();
  }
  return all;
}

/// Frequencies of all channels of all blocks, Hz.
Tensor all_frequencies(const std::vector<Visibilities>& blocks) {
  std::vector<Tensor> parts;
  parts.reserve(blocks.size());
  for (const auto& block : blocks) parts.push_back(block.frequencies());
  return at::cat(parts);
}

Baselines joined_baselines(const std::vector<Visibilities>& blocks, const ArrayRoom& room) {
  constexpr std::int64_t most = std::int64_t{1} << 20;  // samples that are widened at a time
  const bool in_wavelengths = std::none_of(blocks.begin(), blocks.end(),
                                           [](const Visibilities& block) { return block.baselines().frequencies().defined(); });
  const auto dtype = in_wavelengths ? widest(blocks, [](const Visibilities& block) { return block.baselines().u(); })
                                    : torch::Dtype(torch::kFloat64);
  auto u = room.empty({count_samples(blocks)}, dtype), v = room.empty({count_samples(blocks)}, dtype);
  std::int64_t at = 0;
  for (const auto& block : blocks) {
    for (std::int64_t channel = 0; channel < block.nchan(); ++channel) {
      for (std::int64_t begin = 0; begin < block.nvis(); begin += most) {
        const auto count = std::min(most, block.nvis() - begin);
        const auto [own_u, own_v] = block.baselines().block(channel, begin, begin + count);
        u.narrow(0, at, count).copy_(own_u);
        v.narrow(0, at, count).copy_(own_v);
        at += count;
      }
    }
  }
  return Baselines::in_lambda(std::move(u), std::move(v));
}

/// Blocks whose phase centre is not known pass.
void check_phase_centers(const std::vector<Visibilities>& blocks) {
  constexpr double tolerance = 1e-9;  // radian
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto &a = blocks[j].observation(), &b = blocks[i].observation();
      if (a.center != b.center) {
        throw DataError(
            fmt::format("the phases of the blocks are turned to different places: {} and {} of the phase centre; turn "
                        "them to one with with_centre()",
                        offset_text(a.center), offset_text(b.center)));
      }
      const auto distance = phase_center_distance(a, b);
      if (!distance || *distance <= tolerance) continue;
      throw DataError(
          fmt::format("the blocks have different phase centres: {} and {}, {:.4g} arcsec apart; shift their "
                      "visibilities to one centre first, or image them one by one",
                      phase_center_text(a), phase_center_text(b), *distance / units::arcsec));
    }
  }
}

/// No image is of two polarisations.
void check_polarizations(const std::vector<Visibilities>& blocks) {
  const auto first = blocks.front().observation().stokes;
  for (const auto& block : blocks) {
    const auto own = block.observation().stokes;
    if (own == first) continue;
    throw DataError(
        fmt::format("the blocks are of {} and of {}, which have no image in common; read all of one (--stokes; arrays without "
                    "the key `stokes` count as I), or image them one by one",
                    stokes_text(first), stokes_text(own)));
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

Visibilities join_samples(const std::vector<Visibilities>& blocks, const ArrayRoom& room) {
  if (blocks.empty()) throw ValueError("there are no blocks to join; at least one is needed");
  check_phase_centers(blocks);
  check_polarizations(blocks);
  Visibilities joined(joined_baselines(blocks, room),
                      all_of(
                          blocks, [](const Visibilities& block) { return block.data(); }, room),
                      all_of(
                          blocks, [](const Visibilities& block) { return block.weights(); }, room));
  const bool known =
      std::all_of(blocks.begin(), blocks.end(), [](const Visibilities& block) { return block.frequencies().defined(); });
  if (known) joined.set_frequencies(all_frequencies(blocks).mean(0, /*keepdim=*/true));
  joined.set_observation(joined_observation(blocks));
  return joined;
}

}  // namespace mpol
