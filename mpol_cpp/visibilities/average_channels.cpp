#include <mpol_cpp/visibilities/average_channels.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t samples_of_average = 1 << 16;

/// Where averages are put.
struct Averages {
  Tensor data, weights;  ///< (groups, nvis)
  Tensor u, v;           ///< (groups, nvis) where channels have their own, else undefined
};

void average_block(const Visibilities& visibilities, std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end,
                   const Averages& group) {
  const auto zeros = [&](torch::Dtype dtype) { return at::zeros({end - begin}, dtype); };
  auto data = zeros(torch::kComplexDouble), weights = zeros(torch::kFloat64), u = zeros(torch::kFloat64), v = u.clone();
  for (auto channel = first; channel < last; ++channel) {
    const auto samples = visibilities.block(channel, begin, end);
    data += samples.weights * samples.data;
    weights += samples.weights;
    if (!group.u.defined()) continue;
    u += samples.weights * samples.u;
    v += samples.weights * samples.v;
  }
  group.data.slice(0, begin, end).copy_(data / weights);
  group.weights.slice(0, begin, end).copy_(weights);
  if (!group.u.defined()) return;
  group.u.slice(0, begin, end).copy_(u / weights);
  group.v.slice(0, begin, end).copy_(v / weights);
}

Baselines baselines_of(const Visibilities& visibilities, const Averages& averages, const Tensor& frequencies) {
  const auto& given = visibilities.baselines();
  if (averages.u.defined()) return Baselines::in_lambda(averages.u, averages.v);
  return given.frequencies().defined() ? Baselines::in_metres(given.u(), given.v(), frequencies) : given;
}

}  // namespace

Visibilities average_channels(const Visibilities& visibilities, std::int64_t channels, const ArrayRoom& room) {
  if (channels < 1) throw ValueError(fmt::format("{} channels cannot be averaged; give at least 1", channels));
  if (channels == 1) return visibilities;
  const auto nchan = visibilities.nchan(), nvis = visibilities.nvis(), groups = (nchan + channels - 1) / channels;
  const auto& baselines = visibilities.baselines();
  const bool own_baselines = !baselines.frequencies().defined() && baselines.nchan() > 1;
  Averages all{room.empty({groups, nvis}, visibilities.data().scalar_type()),
               room.empty({groups, nvis}, visibilities.weights().scalar_type()),
               {},
               {}};
  if (own_baselines) all.u = room.empty({groups, nvis}, torch::kFloat64), all.v = room.empty({groups, nvis}, torch::kFloat64);
  auto frequencies = visibilities.frequencies().defined() ? at::zeros({groups}, torch::kFloat64) : Tensor();
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto first = group * channels, last = std::min(nchan, first + channels);
    const Averages part{all.data[group], all.weights[group], own_baselines ? all.u[group] : Tensor(),
                        own_baselines ? all.v[group] : Tensor()};
    for (std::int64_t begin = 0; begin < nvis; begin += samples_of_average)
      average_block(visibilities, first, last, begin, std::min(nvis, begin + samples_of_average), part);
    if (frequencies.defined()) frequencies[group] = visibilities.frequencies().slice(0, first, last).mean();
  }
  Visibilities result(baselines_of(visibilities, all, frequencies), std::move(all.data), std::move(all.weights));
  if (frequencies.defined()) result.set_frequencies(frequencies);
  result.set_observation(visibilities.observation());
  return result;
}

}  // namespace mpol
