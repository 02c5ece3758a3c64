#include <mpol_cpp/gridding/peak_signal.h>

#include <cmath>

#include <ATen/ops/fft_irfft2.h>
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

/// The channel with the most signal.
ChannelCells brightest(const GriddedDataset& dataset) {
  const auto pixels = dataset->coords().npix() * dataset->coords().npix();
  const auto channel_of = at::floor_divide(dataset->cells(), pixels);
  const auto excess = dataset->weights() * dataset->visibilities().abs().square() - 2;  // of noise alone its mean is 0
  const auto of_channel = at::zeros({dataset->nchan()}, excess.options()).index_add(0, channel_of, excess);
  const auto channel = of_channel.argmax().item<std::int64_t>();
  const auto own = (channel_of == channel).nonzero().squeeze(1);
  const auto weights = dataset->weights().index_select(0, own);
  return {dataset->cells().index_select(0, own) - channel * pixels, dataset->visibilities().index_select(0, own) * weights,
          weights};
}

/// The largest 2 Re sum w V exp(...) over the pixels; the image's orientation plays no part.
double peak_of(const ChannelCells& cells, std::int64_t npix) {
  const auto half = npix / 2;
  const auto row = at::floor_divide(cells.places, npix), column = cells.places % npix;
  const auto opposite_row = (npix - row) % npix;
  const auto is_right = column > half, is_twice = (column == 0).logical_or(column == half);
  auto plane = at::zeros({npix, half + 1}, cells.sums.options());
  plane.index_put_({at::where(is_right, opposite_row, row), at::where(is_right, npix - column, column)},
                   at::where(is_right, cells.sums.conj(), cells.sums), true);
  plane.index_put_({opposite_row.masked_select(is_twice), column.masked_select(is_twice)},
                   cells.sums.masked_select(is_twice).conj(), true);
  return at::fft_irfft2(plane, at::IntArrayRef{npix, npix}, {-2, -1}, "forward").max().item<double>();
}

}  // namespace

double peak_signal_to_noise(const GriddedDataset& dataset) {
  const auto cells = brightest(dataset);
  const double noise = 2 * std::sqrt(cells.weights.sum().item<double>());
  return noise > 0 ? peak_of(cells, dataset->coords().npix()) / noise : 0;
}

}  // namespace mpol
