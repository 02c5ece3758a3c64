#include <mpol_cpp/gridding/peak_signal.h>

#include <cmath>

#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>

namespace mpol {

double peak_signal_to_noise(const GriddedDataset& dataset) {
  const auto npix = dataset->coords().npix(), pixels = npix * npix;
  const auto& weights = dataset->weights();
  const auto channel_of = at::floor_divide(dataset->cells(), pixels);
  const auto excess = weights * dataset->visibilities().abs().square() - 2;  // of noise alone its mean is 0
  const auto channel = at::zeros({dataset->nchan()}, excess.options()).index_add(0, channel_of, excess).argmax().item<std::int64_t>();
  const auto own = (channel_of == channel).nonzero().squeeze(1);
  const auto weight = weights.index_select(0, own);
  auto plane = at::zeros({pixels}, dataset->visibilities().options());
  plane.index_put_({dataset->cells().index_select(0, own) - channel * pixels}, dataset->visibilities().index_select(0, own) * weight);
  // Re sum W V exp(...), with the variance sum W; the image's orientation plays no part.
  const double peak = at::real(at::fft_fft2(plane.view({npix, npix}))).max().item<double>();
  const double noise = std::sqrt(weight.sum().item<double>());
  return noise > 0 ? peak / noise : 0;
}

}  // namespace mpol
