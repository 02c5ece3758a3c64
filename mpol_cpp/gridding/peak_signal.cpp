#include <mpol_cpp/gridding/peak_signal.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/fft_rfftfreq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace mpol {
namespace {

/// The cells of a channel.
struct ChannelCells {
  Tensor places;         ///< of a packed plane
  Tensor sums, weights;  ///< of w V and w
};

/// The cells of each channel.
class CellsByChannel {
 public:
  explicit CellsByChannel(const GriddedDataset& dataset)
      : dataset_(dataset),
        pixels_(dataset->coords().npix() * dataset->coords().npix()),
        channel_of_(at::floor_divide(dataset->cells(), pixels_)),
        order_(channel_of_.argsort(/*stable=*/true)) {
    const auto counts = at::bincount(channel_of_, {}, dataset->nchan());
    ends_ = counts.cumsum(0);
  }

  /// How much signal there is in each channel.
  Tensor signal() const {
    const auto excess = dataset_->weights() * dataset_->visibilities().abs().square() - 2;  // of noise alone its mean is 0
    return at::zeros({dataset_->nchan()}, excess.options()).index_add(0, channel_of_, excess);
  }

  ChannelCells of(std::int64_t channel) const {
    const auto begin = channel > 0 ? ends_[channel - 1].item<std::int64_t>() : 0;
    const auto own = order_.slice(0, begin, ends_[channel].item<std::int64_t>());
    const auto weights = dataset_->weights().index_select(0, own);
    return {dataset_->cells().index_select(0, own) - channel * pixels_, dataset_->visibilities().index_select(0, own) * weights,
            weights};
  }

 private:
  const GriddedDataset& dataset_;
  std::int64_t pixels_;
  Tensor channel_of_, order_, ends_;
};

constexpr int most_tapers = 7;
constexpr double fewest_cells = 10;  // of which an image is made

/// The dirty image over its noise, 2 Re sum w V exp(...) / 2 sqrt(sum w); the image's orientation plays no part. With a taper t
/// w V becomes t w V, and the noise that of its sum.
Tensor image_over_noise(const ChannelCells& cells, std::int64_t npix, const Tensor& taper = {}) {
  const auto half = npix / 2;
  const auto row = at::floor_divide(cells.places, npix), column = cells.places % npix;
  const auto opposite_row = (npix - row) % npix;
  const auto is_right = column > half, is_twice = (column == 0).logical_or(column == half);
  const auto sums = taper.defined() ? cells.sums * taper : cells.sums;
  const auto variance = taper.defined() ? cells.weights * taper.square() : cells.weights;
  auto plane = at::zeros({npix, half + 1}, sums.options());
  plane.index_put_({at::where(is_right, opposite_row, row), at::where(is_right, npix - column, column)},
                   at::where(is_right, sums.conj(), sums), true);
  plane.index_put_({opposite_row.masked_select(is_twice), column.masked_select(is_twice)}, sums.masked_select(is_twice).conj(),
                   true);
  const double noise = 2 * std::sqrt(variance.sum().item<double>());
  auto image = at::fft_irfft2(plane, at::IntArrayRef{npix, npix}, {-2, -1}, "forward");
  return noise > 0 ? image.div_(noise) : image.zero_();
}

/// Squares of places' distances from the origin of the uv plane, in cells.
Tensor squared_distances(const Tensor& places, std::int64_t npix) {
  const auto signed_index = [npix](const Tensor& index) { return at::where(index > npix / 2, index - npix, index); };
  const auto row = signed_index(at::floor_divide(places, npix)), column = signed_index(places % npix);
  return (row.square() + column.square()).to(torch::kFloat64);
}

/// How many cells of the same weight would make a sum as well.
double count_of(const Tensor& weights) {
  return std::pow(weights.sum().item<double>(), 2) / weights.square().sum().item<double>();
}

ChannelCells brightest_cells(const GriddedDataset& dataset) {
  const CellsByChannel cells(dataset);
  return cells.of(cells.signal().argmax().item<std::int64_t>());
}

/// What a map of one scale shows of itself alone. @param image  over its noise
DirtyPeaks peaks_on_scale(const Tensor& image) {
  constexpr double part = 0.7;
  const double brightest = image.max().item<double>(), darkest = -image.min().item<double>();
  const auto seen = brightest >= darkest ? image > part * brightest : image < -part * darkest;
  const double share = seen.sum().item<double>() / static_cast<double>(image.numel());
  return {brightest, darkest, std::max(brightest, darkest), share};
}

/// @param enough  on some scale, of which larger ones tell no more
DirtyPeaks peaks_of(const ChannelCells& cells, std::int64_t npix, double enough) {
  auto peaks = peaks_on_scale(image_over_noise(cells, npix));
  if (cells.places.numel() == 0) return peaks;
  const auto squares = squared_distances(cells.places, npix);
  double width = std::sqrt(squares.max().item<double>());
  for (int taper = 0; taper < most_tapers && peaks.on_any_scale < enough; ++taper) {
    width /= 2;
    const auto factors = (squares / (-2 * width * width)).exp_();
    if (!(count_of(cells.weights * factors) >= fewest_cells)) break;
    const auto larger = peaks_on_scale(image_over_noise(cells, npix, factors));
    if (!(larger.on_any_scale > peaks.on_any_scale)) continue;
    peaks.on_any_scale = larger.on_any_scale;
    peaks.share_on_scale = larger.share_on_scale;
  }
  return peaks;
}

}  // namespace

double peak_signal_to_noise(const GriddedDataset& dataset) {
  return image_over_noise(brightest_cells(dataset), dataset->coords().npix()).max().item<double>();
}

double strongest_signal(const GriddedDataset& dataset) { return CellsByChannel(dataset).signal().max().item<double>(); }

DirtyPeaks dirty_peaks(const GriddedDataset& dataset) {
  return peaks_of(brightest_cells(dataset), dataset->coords().npix(), std::numeric_limits<double>::infinity());
}

std::vector<DirtyPeaks> dirty_peaks_of_channels(const GriddedDataset& dataset) {
  constexpr double enough = 20;
  const CellsByChannel cells(dataset);
  std::vector<DirtyPeaks> peaks;
  for (std::int64_t channel = 0; channel < dataset->nchan(); ++channel)
    peaks.push_back(peaks_of(cells.of(channel), dataset->coords().npix(), enough));
  return peaks;
}

std::vector<double> filled_shares(const Tensor& sky, const GriddedDataset& dataset, double noise_factor) {
  constexpr double fringes = 1.2, clear = 3;
  const auto& coords = dataset->coords();
  const auto npix = coords.npix();
  std::vector<double> shares(static_cast<std::size_t>(dataset->nchan()), 0.0);
  if (dataset->cells().numel() == 0) return shares;
  const double longest = std::sqrt(squared_distances(dataset->cells() % (npix * npix), npix).max().item<double>());
  if (!(longest > 0)) return shares;
  const double sigma = fringes * static_cast<double>(npix) / longest / std::sqrt(8 * std::log(2.0));  // pixels
  const auto squares = [&](const Tensor& frequencies) { return frequencies.square().mul_(-2 * std::pow(M_PI * sigma, 2)); };
  const auto blur = squares(at::fft_fftfreq(npix, 1.0, torch::TensorOptions(torch::kFloat64)))
                        .unsqueeze(1)
                        .add(squares(at::fft_rfftfreq(npix, 1.0, torch::TensorOptions(torch::kFloat64))))
                        .exp_()
                        .mul_(2 * M_PI * sigma * sigma * coords.cell_area())
                        .to(sky.scalar_type());
  const auto weights = at::zeros({dataset->nchan()}, torch::kFloat64)
                           .index_add(0, at::floor_divide(dataset->cells(), npix * npix), dataset->weights());
  for (std::int64_t channel = 0; channel < dataset->nchan(); ++channel) {
    const double noise = noise_factor / std::sqrt(weights.select(0, channel).item<double>());  // infinite without data
    const auto image = sky[channel].detach().to(torch::kCPU);
    const auto blurred = at::fft_irfft2(at::fft_rfft2(image).mul_(blur), at::IntArrayRef{npix, npix}).abs_();
    const auto above = [&](double level) { return (blurred > level).sum().item<double>() / static_cast<double>(npix * npix); };
    auto& share = shares[static_cast<std::size_t>(channel)];
    share = above(noise);
    const double peak = blurred.max().item<double>() / noise;
    if (peak > clear) share = std::min(share, above(clear * noise) * std::log(peak) / std::log(peak / clear));
  }
  return shares;
}

double filled_share(const Tensor& sky, const GriddedDataset& dataset, double noise_factor) {
  double sum = 0;
  for (const double share : filled_shares(sky, dataset, noise_factor)) sum += share;
  return sum / static_cast<double>(dataset->nchan());
}

}  // namespace mpol
