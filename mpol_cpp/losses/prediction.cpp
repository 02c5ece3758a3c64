#include <mpol_cpp/losses/prediction.h>

#include <algorithm>
#include <optional>

#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/losses/sky_checks.h>

namespace mpol::losses {
void for_each_prediction(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                         const ChannelMap& channels,
                         const std::function<void(std::int64_t channel, std::int64_t begin, const Tensor& model)>& use) {
  const torch::NoGradGuard no_grad;
  channels.check_sources(visibilities.nchan());
  detail::check_sky_shape(sky, channels.nchan(), coords.npix());
  const auto image = sky.detach().to(torch::kCPU, torch::kFloat64).view({channels.nchan(), coords.npix(), coords.npix()});
  const auto& baselines = visibilities.baselines();
  const auto nvis = visibilities.nvis();
  const bool once = baselines.shared() && nvis <= prediction_block;  // points are sorted once for all channels
  std::optional<Nufft> transform;
  for (std::int64_t image_channel = 0; image_channel < channels.nchan(); ++image_channel) {
    for (const auto channel : channels.sources[static_cast<std::size_t>(image_channel)]) {
      for (std::int64_t begin = 0; begin < nvis; begin += prediction_block) {
        if (!transform || !once) {
          const auto [u, v] = baselines.block(channel, begin, std::min(nvis, begin + prediction_block));
          transform.emplace(coords, Baselines::in_lambda(u, v), 1, NufftOptions{prediction_tolerance});
        }
        use(channel, begin, (*transform)->forward(image.narrow(0, image_channel, 1))[0]);
      }
    }
  }
}

Tensor predicted_visibilities(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                              const ChannelMap& channels) {
  auto all = at::zeros({visibilities.nchan(), visibilities.nvis()}, torch::kComplexDouble);
  for_each_prediction(coords, sky, visibilities, channels, [&](std::int64_t channel, std::int64_t begin, const Tensor& model) {
    all[channel].narrow(0, begin, model.size(0)).copy_(model);
  });
  return all;
}

double loose_chi_squared(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                         const ChannelMap& channels) {
  double sum = 0;
  for_each_prediction(coords, sky, visibilities, channels, [&](std::int64_t channel, std::int64_t begin, const Tensor& model) {
    const auto samples = visibilities.block(channel, begin, begin + model.size(0));
    sum += (at::view_as_real(model - samples.data).square().sum({-1}) * samples.weights).sum().item<double>();
  });
  return sum;
}

}  // namespace mpol::losses
