#include <mpol_cpp/uncertainty/flux_seen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/topk.h>

#include <mpol_cpp/likelihoods/forms/sky_checks.h>
#include <mpol_cpp/likelihoods/prediction.h>

namespace mpol {
namespace {

constexpr std::int64_t shortest = 256, block = std::int64_t{1} << 22;

/// The shortest of some baselines, wavelengths.
std::pair<Tensor, Tensor> shortest_of(const Tensor& u, const Tensor& v) {
  const auto places = std::get<1>(at::topk(u.square() + v.square(), std::min(shortest, u.size(0)), 0, /*largest=*/false));
  return {u.index_select(0, places), v.index_select(0, places)};
}

std::pair<Tensor, Tensor> shortest_baselines(const Baselines& baselines, std::int64_t channel) {
  Tensor u, v;
  for (std::int64_t begin = 0; begin < baselines.nvis(); begin += block) {
    const auto [some_u, some_v] = baselines.block(channel, begin, std::min(baselines.nvis(), begin + block));
    const auto [own_u, own_v] = shortest_of(some_u, some_v);
    u = u.defined() ? at::cat({u, own_u}) : own_u;
    v = v.defined() ? at::cat({v, own_v}) : own_v;
  }
  return shortest_of(u, v);
}

}  // namespace

Tensor flux_seen(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities, const ChannelMap& channels) {
  channels.check_sources(visibilities.nchan());
  losses::detail::check_sky_shape(sky, channels.nchan(), coords.npix());
  auto seen = at::ones({channels.nchan()}, torch::kFloat64);
  for (std::int64_t image = 0; image < channels.nchan(); ++image) {
    const auto own = sky[image].detach().to(torch::kCPU, torch::kFloat64);
    const double flux = std::abs(own.sum().item<double>()) * coords.cell_area();
    double largest = 0;
    for (const auto channel : channels.sources[static_cast<std::size_t>(image)]) {
      const auto [u, v] = shortest_baselines(visibilities.baselines(), channel);
      largest = std::max(largest, losses::predicted_block(coords, own, u, v).abs().max().item<double>());
    }
    if (flux > 0) seen[image] = std::min(1.0, largest / flux);
  }
  return seen;
}

}  // namespace mpol
