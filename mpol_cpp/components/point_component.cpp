#include <mpol_cpp/components/point_component.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr std::int64_t samples_of_subtraction = std::int64_t{1} << 20;

}  // namespace

Tensor point_visibilities(const PointComponent& source, const Tensor& u, const Tensor& v) {
  const auto turns = (u * (source.east * units::arcsec) + v * (source.north * units::arcsec)).mul_(-2 * units::pi);
  return at::polar(at::ones_like(turns), turns);
}

Visibilities without_points(const Visibilities& visibilities, const ChannelMap& channels,
                            const std::vector<PointComponent>& sources, const ArrayRoom& room) {
  channels.check_sources(visibilities.nchan());
  for (const auto& source : sources) {
    if (static_cast<std::int64_t>(source.flux.size()) == channels.nchan()) continue;
    throw ValueError(fmt::format("a point source has {} fluxes; the image has {} channels: give one for each", source.flux.size(),
                                 channels.nchan()));
  }
  auto rest = room.empty(visibilities.data().sizes(), visibilities.data().scalar_type());
  rest.copy_(visibilities.data());
  for (std::int64_t image = 0; image < channels.nchan(); ++image) {
    for (const auto channel : channels.sources[static_cast<std::size_t>(image)]) {
      for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += samples_of_subtraction) {
        const auto end = std::min(visibilities.nvis(), begin + samples_of_subtraction);
        auto samples = visibilities.block(channel, begin, end);
        for (const auto& source : sources)
          samples.data =
              samples.data - source.flux[static_cast<std::size_t>(image)] * point_visibilities(source, samples.u, samples.v);
        rest[channel].slice(0, begin, end).copy_(samples.data);
      }
    }
  }
  Visibilities result(visibilities.baselines(), std::move(rest), visibilities.weights());
  if (visibilities.frequencies().defined()) result.set_frequencies(visibilities.frequencies());
  result.set_observation(visibilities.observation());
  return result;
}

}  // namespace mpol
