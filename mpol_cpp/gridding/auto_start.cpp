#include <mpol_cpp/gridding/auto_start.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>

namespace mpol {
namespace {

constexpr double floor_share = 0.01;  // of the flux

/// The dirty image's shape in arbitrary units, > 0 everywhere; (npix, npix).
Tensor shape_of(const Tensor& dirty) {
  const auto bright = dirty.clamp_min(0);
  const double peak = bright.max().item<double>();
  if (!(peak > 0) || !std::isfinite(peak)) return at::ones_like(dirty);
  const auto squared = (bright / peak).square();
  return squared + floor_share * squared.mean();
}

/// What is weighted of one channel.
struct ChannelSums {
  double correlation = 0;  ///< sum W Re(V* M)
  double power = 0;        ///< sum W |M|^2
  double weight = 0;       ///< sum W, Jy^-2
};

/// The factor of a shape: what fits best, but no less than gives the flux of a source as bright as the noise.
double scale_of(const ChannelSums& sums, double flux) {
  const double least = sums.weight > 0 ? 1 / (std::sqrt(sums.weight) * flux) : 1 / flux;
  const double best = sums.correlation / sums.power;
  return std::isfinite(best) ? std::max(best, least) : least;
}

}  // namespace

Tensor auto_start(const GriddedDataset& dataset) {
  const auto& coords = dataset->coords();
  const auto pixels = coords.npix() * coords.npix();
  auto sky = DirtyImager(dataset, DirtyImagerOptions().weighting(Weighting::briggs).robust(0.5)).image();
  for (std::int64_t channel = 0; channel < dataset->nchan(); ++channel) {
    auto image = sky[channel];
    image.copy_(shape_of(image));
    const auto own = (at::floor_divide(dataset->cells(), pixels) == channel).nonzero().squeeze(1);
    const auto cells = dataset->cells().index_select(0, own) - channel * pixels;
    const auto data = dataset->visibilities().index_select(0, own), spectrum = at::fft_fft2(sky_to_packed(image));
    const auto model = spectrum.flatten().index_select(0, cells) * coords.cell_area();
    const auto weights = dataset->weights().index_select(0, own);
    const ChannelSums sums{(at::real(data.conj() * model) * weights).sum().item<double>(),
                           (at::real(model.conj() * model) * weights).sum().item<double>(), weights.sum().item<double>()};
    image.mul_(scale_of(sums, image.sum().item<double>() * coords.cell_area()));
  }
  return sky;
}

Tensor auto_start(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels) {
  const auto options = DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off);
  return auto_start(DataAverager(coords, visibilities, options).to_dataset());
}

}  // namespace mpol
