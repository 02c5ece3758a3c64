#include <mpol_cpp/gridding/sky_image.h>

#include <algorithm>
#include <vector>

#include <ATen/ops/fft_ifft.h>
#include <ATen/ops/fft_irfft.h>
#include <ATen/ops/from_blob.h>

namespace mpol::gridding {
namespace {

using Complex = c10::complex<double>;

constexpr std::int64_t batch_bytes = std::int64_t{2} << 20;
constexpr auto unnormalized = "forward";  // the inverse transform without 1/n

std::int64_t batch_length(std::int64_t npix) {
  return std::max<std::int64_t>(1, batch_bytes / (npix * static_cast<std::int64_t>(sizeof(Complex))));
}

/// Fills the half plane, columns 0 … npix/2 in packed order, and says which of its columns hold anything. The signs
/// move the origin of the image to pixel npix/2 of both axes.
std::vector<bool> fill_half_plane(const WeightedCells& given, std::int64_t npix, Complex* plane) {
  const auto columns = npix / 2 + 1;
  std::vector<bool> occupied(static_cast<std::size_t>(columns), false);
  const auto add = [&](std::int64_t row, std::int64_t column, Complex value) {
    plane[row * columns + column] += value;
    occupied[static_cast<std::size_t>(column)] = true;
  };
  for (std::size_t k = 0; k < given.cells.size(); ++k) {
    const auto row = given.cells[k] / npix % npix, column = given.cells[k] % npix;
    const auto partner_row = (npix - row) % npix, partner_column = (npix - column) % npix;
    const double weight = ((row + column) % 2 == 0 ? given.scale : -given.scale) * given.weights[k];
    const auto value = given.visibilities.empty() ? Complex(weight) : weight * given.visibilities[k];
    if (column < columns) add(row, column, value);
    if (partner_column < columns) add(partner_row, partner_column, std::conj(value));
  }
  return occupied;
}

void transform_columns(const std::vector<bool>& occupied, std::int64_t npix, const Tensor& plane) {
  const auto columns = npix / 2 + 1, length = batch_length(npix);
  for (std::int64_t first = 0; first < columns; first += length) {
    const auto count = std::min(length, columns - first);
    if (std::none_of(occupied.begin() + first, occupied.begin() + first + count, [](bool data) { return data; })) continue;
    auto batch = plane.narrow(1, first, count);
    batch.copy_(at::fft_ifft(batch.t().contiguous(), c10::nullopt, -1, unnormalized).t());
  }
}

/// Rows of the image take fewer elements than rows of the half plane, so that an image row never overwrites a half
/// plane row that is still to come.
void transform_rows(std::int64_t npix, const Tensor& plane, const Tensor& image) {
  const auto length = batch_length(npix);
  for (std::int64_t first = 0; first < npix; first += length) {
    const auto count = std::min(length, npix - first);
    const auto rows = at::fft_irfft(plane.narrow(0, first, count).contiguous(), npix, -1, unnormalized);
    image.narrow(0, first, count).copy_(rows.flip({-1}));
  }
}

}  // namespace

void make_sky_image(const WeightedCells& cells, std::int64_t npix, Tensor storage) {
  const auto columns = npix / 2 + 1;
  storage.zero_();
  auto* begin = storage.mutable_data_ptr<double>();
  const auto occupied = fill_half_plane(cells, npix, reinterpret_cast<Complex*>(begin));
  const auto plane = at::from_blob(begin, {npix, columns}, torch::kComplexDouble);
  transform_columns(occupied, npix, plane);
  transform_rows(npix, plane, storage.narrow(0, 0, npix * npix).view({npix, npix}));
}

}  // namespace mpol::gridding
