#include <mpol_cpp/likelihoods/prediction.h>

#include <algorithm>
#include <optional>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol::losses {
namespace {

/// sum_k w_k |model_k - d_k|^2 of some samples.
double squared_distance(const Tensor& model, const VisibilityBlock& samples) {
  const auto* of_model = model.const_data_ptr<c10::complex<double>>();
  const auto* data = samples.data.const_data_ptr<c10::complex<double>>();
  const auto* weight = samples.weights.const_data_ptr<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < model.size(0); ++i) {
    const double real = of_model[i].real() - data[i].real(), imag = of_model[i].imag() - data[i].imag();
    sum += weight[i] * (real * real + imag * imag);
  }
  return sum;
}

}  // namespace

std::int64_t prediction_block_for(std::int64_t npix) {
  return std::clamp(npix * npix / 2, prediction_block / 4, prediction_block);
}

void for_each_prediction(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                         const ChannelMap& channels,
                         const std::function<void(std::int64_t channel, std::int64_t begin, const Tensor& model)>& use) {
  const torch::NoGradGuard no_grad;
  channels.check_sources(visibilities.nchan());
  detail::check_sky_shape(sky, channels.nchan(), coords.npix());
  const auto image = sky.detach().to(torch::kCPU, torch::kFloat64).view({channels.nchan(), coords.npix(), coords.npix()});
  const auto& baselines = visibilities.baselines();
  const auto nvis = visibilities.nvis();
  // Points that channels share are sorted once for all of them, unless there are too many.
  const bool once = baselines.shared() && visibilities.nchan() > 1 && nvis <= prediction_block;
  const auto block = once ? nvis : prediction_block_for(coords.npix());
  std::optional<Nufft> transform;
  for (std::int64_t image_channel = 0; image_channel < channels.nchan(); ++image_channel) {
    for (const auto channel : channels.sources[static_cast<std::size_t>(image_channel)]) {
      for (std::int64_t begin = 0; begin < nvis; begin += block) {
        if (!transform || !once) {
          const auto [u, v] = baselines.block(channel, begin, std::min(nvis, begin + block));
          transform.reset();  // its memory goes first
          transform.emplace(coords, Baselines::in_lambda(u, v), 1, NufftOptions{prediction_tolerance});
        }
        use(channel, begin, (*transform)->forward(image.narrow(0, image_channel, 1))[0]);
      }
    }
  }
}

Tensor predicted_block(const GridCoords& coords, const Tensor& sky_channel, const Tensor& u, const Tensor& v) {
  const torch::NoGradGuard no_grad;
  const Nufft transform(coords, Baselines::in_lambda(u, v), 1, NufftOptions{prediction_tolerance});
  return transform->forward(sky_channel.unsqueeze(0))[0];
}

Tensor predicted_visibilities(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                              const ChannelMap& channels) {
  auto all = at::zeros({visibilities.nchan(), visibilities.nvis()}, torch::kComplexDouble);
  for_each_prediction(coords, sky, visibilities, channels, [&](std::int64_t channel, std::int64_t begin, const Tensor& model) {
    all[channel].narrow(0, begin, model.size(0)).copy_(model);
  });
  return all;
}

Visibilities residual_visibilities(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                                   const ChannelMap& channels) {
  auto residual = visibilities.data().clone();
  for_each_prediction(coords, sky, visibilities, channels, [&](std::int64_t channel, std::int64_t begin, const Tensor& model) {
    residual.select(0, channel).narrow(0, begin, model.size(0)).sub_(model);
  });
  Visibilities result(visibilities.baselines(), residual, visibilities.weights());
  if (visibilities.frequencies().defined()) result.set_frequencies(visibilities.frequencies());
  result.set_observation(visibilities.observation());
  return result;
}

double loose_chi_squared(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                         const ChannelMap& channels) {
  double sum = 0;
  for_each_prediction(coords, sky, visibilities, channels, [&](std::int64_t channel, std::int64_t begin, const Tensor& model) {
    sum += squared_distance(model, visibilities.block(channel, begin, begin + model.size(0)));
  });
  return sum;
}

}  // namespace mpol::losses
