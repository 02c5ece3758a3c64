#include <mpol_cpp/calibration/block_gain.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <ATen/ops/polar.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr std::int64_t samples_of_gain = 1 << 16;

/// The gains as columns, (blocks) float64.
struct GainColumns {
  explicit GainColumns(const std::vector<BlockGain>& gains) {
    std::vector<double> l, m, a, s;
    for (const auto& gain : gains) {
      l.push_back(gain.east * units::arcsec);
      m.push_back(gain.north * units::arcsec);
      a.push_back(gain.amplitude);
      s.push_back(gain.weight_scale);
    }
    const auto column = [](const std::vector<double>& values) { return at::tensor(values, torch::kFloat64); };
    east = column(l), north = column(m), amplitude = column(a), weight_scale = column(s);
  }
  Tensor east, north, amplitude, weight_scale;
};

void check_gains(const SampleBlocks& blocks, const std::vector<BlockGain>& gains) {
  if (static_cast<std::int64_t>(gains.size()) != blocks.size())
    throw ValueError(fmt::format("{} gains for {} blocks", gains.size(), blocks.size()));
  for (std::size_t i = 0; i < gains.size(); ++i) {
    const auto& gain = gains[i];
    const bool fine = std::isfinite(gain.east) && std::isfinite(gain.north) && gain.amplitude > 0 && gain.weight_scale > 0 &&
                      std::isfinite(gain.amplitude) && std::isfinite(gain.weight_scale);
    if (fine) continue;
    throw ValueError(
        fmt::format("the gain of {} is shift ({}, {}), amplitude {}, weight scale {}; they must be finite, the last two > 0",
                    blocks.names[i], gain.east, gain.north, gain.amplitude, gain.weight_scale));
  }
}

}  // namespace

Visibilities calibrated(const Visibilities& visibilities, const SampleBlocks& blocks, const std::vector<BlockGain>& gains,
                        const ArrayRoom& room) {
  blocks.check(visibilities.nchan(), visibilities.nvis());
  check_gains(blocks, gains);
  const GainColumns columns(gains);
  auto data = room.empty(visibilities.data().sizes(), visibilities.data().scalar_type());
  auto weights = room.empty(visibilities.weights().sizes(), visibilities.weights().scalar_type());
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += samples_of_gain) {
      const auto end = std::min(visibilities.nvis(), begin + samples_of_gain);
      const auto samples = visibilities.block(channel, begin, end);
      const auto own = blocks.of(channel, begin, end);
      const auto of_sample = [&](const Tensor& column) { return column.index_select(0, own); };
      const auto turns = (samples.u * of_sample(columns.east) + samples.v * of_sample(columns.north)).mul_(2 * units::pi);
      const auto amplitude = of_sample(columns.amplitude);
      data[channel].slice(0, begin, end).copy_(samples.data * at::polar(amplitude.reciprocal(), turns));
      weights[channel].slice(0, begin, end).copy_(samples.weights * of_sample(columns.weight_scale) * amplitude.square());
    }
  }
  Visibilities result(visibilities.baselines(), std::move(data), std::move(weights));
  if (visibilities.frequencies().defined()) result.set_frequencies(visibilities.frequencies());
  result.set_observation(visibilities.observation());
  return result;
}

}  // namespace mpol
