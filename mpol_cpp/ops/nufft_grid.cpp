#include <mpol_cpp/ops/nufft_grid.h>

#include <algorithm>

#include <mpol_cpp/ops/nufft_window.h>
#include <mpol_cpp/ops/nufft_workers.h>

namespace mpol::ops {

template <typename T>
NufftGrid<T>::NufftGrid(std::int64_t npix, int width, const NufftExtent& extent)
    : npix_(npix),
      tile_(NufftTile::of(width, sizeof(T))),
      extent_(extent),
      padded_rows_(npix),
      kept_(std::min(extent.last_u, npix) + 1),
      distance_(AlignedArray<Complex>::padded(extent.tiles_v * NufftTile::cells + tile_.distance) + AlignedArray<Complex>::line),
      columns_(std::max((extent.tiles_u - 1) * NufftTile::cells + tile_.columns, kept_ + guard() + 1)) {
  const NufftWindow window(width);
  for (std::int64_t i = -npix_ / 2; i < npix_ / 2; ++i) {
    correction_.push_back(1 / window.transform(static_cast<double>(i) / (2.0 * static_cast<double>(npix_))));
  }
  for (const double value : correction_) column_factors_.push_back(static_cast<T>(value));
}

template <typename T>
void NufftGrid<T>::prepare() {
  while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) scratch_.push_back(padded_rows_.scratch());
  if (half_plane_.size() == 0) half_plane_ = AlignedArray<Complex>(kept_ * padded_rows_.column_distance());
}

/// The rows' factors: the window, the scale, and the sign that moves v = 0 to the middle of a column's transform.
template <typename T>
std::vector<T> NufftGrid<T>::row_factors(double scale) const {
  std::vector<T> factors;
  factors.reserve(static_cast<std::size_t>(npix_));
  for (std::int64_t row = 0; row < npix_; ++row) {
    const double sign = (row - npix_ / 2) % 2 == 0 ? 1 : -1;
    factors.push_back(static_cast<T>(scale * sign * correction_[static_cast<std::size_t>(row)]));
  }
  return factors;
}

/// Pixel npix/2 - 1 - n of a sky row lies at l = n dl; n is counted modulo 2 npix along the line.
template <typename T>
void NufftGrid<T>::from_image(const T* image, double scale, Complex* cells) {
  prepare();
  const auto half = npix_ / 2;
  const auto factors = row_factors(scale);
  const auto load = [&](std::int64_t row, T* line) {
    const T* pixels = image + row * npix_;
    const T* column = column_factors_.data();
    const T factor = factors[static_cast<std::size_t>(row)];
    T* negative = line + 2 * npix_ - half;
    for (std::int64_t n = 0; n < half; ++n) line[n] = pixels[half - 1 - n] * column[half + n] * factor;
    std::fill(line + half, negative, T(0));
    for (std::int64_t n = 0; n < half; ++n) negative[n] = pixels[npix_ - 1 - n] * column[n] * factor;
  };
  padded_rows_.to_columns(kept_, load, half_plane_.data(), scratch_);
  share_tasks(kept_, 4, [&](std::int64_t j, std::int64_t worker) { column_from_image(j, worker, cells); });
}

template <typename T>
void NufftGrid<T>::column_from_image(std::int64_t j, std::int64_t worker, Complex* cells) const {
  const auto half = npix_ / 2, last_v = extent_.last_v, last_u = extent_.last_u;
  Complex* column = scratch_[static_cast<std::size_t>(worker)].column.data();
  const Complex* from = half_plane_.data() + j * padded_rows_.column_distance();
  std::copy_n(from + half, half, column);
  std::fill_n(column + half, npix_, Complex(0));
  std::copy_n(from, half, column + 2 * npix_ - half);
  padded_rows_.transforms().forward_column(column);
  Complex* own = cells + (j + guard()) * distance_;
  if (last_v < npix_) {
    std::copy_n(column + npix_ - last_v, rows(), own);
  } else {
    for (std::int64_t v = -last_v; v <= last_v; ++v) own[v + last_v] = column[wrapped(v)];
  }
  const auto mirror = [&](std::int64_t to) {
    Complex* other = cells + (to + guard()) * distance_;
    for (std::int64_t i = 0; i < rows(); ++i) other[i] = std::conj(own[rows() - 1 - i]);
  };
  if (j > 0 && j <= guard()) mirror(-j);
  if (j < npix_ && 2 * npix_ - j <= last_u) mirror(2 * npix_ - j);
}

template <typename T>
void NufftGrid<T>::to_image(Complex* cells, double scale, T* image, Accumulate accumulate) {
  prepare();
  const auto half = npix_ / 2;
  share_tasks(kept_, 4, [&](std::int64_t j, std::int64_t worker) { column_to_image(j, worker, cells); });
  const auto factors = row_factors(scale);
  const auto store = [&](std::int64_t row, const T* line) {
    T* pixels = image + row * npix_;
    const T* column = column_factors_.data();
    const T factor = factors[static_cast<std::size_t>(row)];
    const T* negative = line + 2 * npix_ - half;
    if (accumulate == Accumulate::add) {
      for (std::int64_t n = 0; n < half; ++n) pixels[half - 1 - n] += line[n] * column[half + n] * factor;
      for (std::int64_t n = 0; n < half; ++n) pixels[npix_ - 1 - n] += negative[n] * column[n] * factor;
    } else {
      for (std::int64_t n = 0; n < half; ++n) pixels[half - 1 - n] = line[n] * column[half + n] * factor;
      for (std::int64_t n = 0; n < half; ++n) pixels[npix_ - 1 - n] = negative[n] * column[n] * factor;
    }
  };
  padded_rows_.from_columns(kept_, half_plane_.data(), store, scratch_);
}

/// Columns of the half plane but the first and the last stand for two of the plane.
template <typename T>
void NufftGrid<T>::column_to_image(std::int64_t j, std::int64_t worker, const Complex* cells) const {
  const auto half = npix_ / 2, last_v = extent_.last_v, last_u = extent_.last_u;
  Complex* column = scratch_[static_cast<std::size_t>(worker)].column.data();
  std::fill_n(column, 2 * npix_, Complex(0));
  const T factor = j == 0 || j == npix_ ? T(1) : T(0.5);
  const Complex* own = cells + (j + guard()) * distance_;
  if (last_v < npix_) {
    for (std::int64_t i = 0; i < rows(); ++i) column[npix_ - last_v + i] = factor * own[i];
  } else {
    for (std::int64_t v = -last_v; v <= last_v; ++v) column[wrapped(v)] += factor * own[v + last_v];
  }
  const auto add_mirrored = [&](std::int64_t from) {
    const Complex* other = cells + (from + guard()) * distance_;
    for (std::int64_t v = -last_v; v <= last_v; ++v) column[wrapped(v)] += factor * std::conj(other[last_v - v]);
  };
  if (j > 0 && j <= guard()) add_mirrored(-j);
  if (j < npix_ && 2 * npix_ - j <= last_u) add_mirrored(2 * npix_ - j);
  padded_rows_.transforms().inverse_column(column);
  Complex* to = half_plane_.data() + j * padded_rows_.column_distance();
  std::copy_n(column + 2 * npix_ - half, half, to);
  std::copy_n(column, half, to + half);
}

template <typename T>
std::int64_t NufftGrid<T>::memory_bytes() const {
  return static_cast<std::int64_t>(sizeof(Complex)) * kept_ * padded_rows_.column_distance();
}

template class NufftGrid<float>;
template class NufftGrid<double>;

}  // namespace mpol::ops
