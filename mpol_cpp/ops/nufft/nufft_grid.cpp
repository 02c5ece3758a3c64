#include <mpol_cpp/ops/nufft/nufft_grid.h>

#include <algorithm>

#include <mpol_cpp/ops/nufft/nufft_window.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {
namespace {

/// to[i] = from[n - 1 - i] * factors[i] * factor
template <typename T>
void reverse(const T* __restrict from, const T* __restrict factors, T factor, T* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[n - 1 - i] * factors[i] * factor;
}
template <typename T>
void add_reversed(const T* __restrict from, const T* __restrict factors, T factor, T* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[n - 1 - i] * factors[i] * factor;
}

}  // namespace

template <typename T>
NufftGrid<T>::NufftGrid(std::int64_t npix, int width, const NufftExtent& extent)
    : image_npix_(npix),
      npix_(padded(npix)),
      tile_(NufftTile::of(width, sizeof(T))),
      extent_(extent),
      padded_rows_(npix_, {npix_ / 2, npix_ / 2}),
      kept_(std::min(extent.last_u, npix_) + 1),
      distance_(AlignedArray<Complex>::padded(extent.tiles_v * NufftTile::cells + tile_.distance) + AlignedArray<Complex>::line),
      columns_(std::max((extent.tiles_u - 1) * NufftTile::cells + tile_.columns, kept_ + guard() + 1)) {
  const NufftWindow window(width);
  for (std::int64_t i = -npix_ / 2; i < npix_ / 2; ++i) {
    correction_.push_back(1 / window.transform(static_cast<double>(i) / (2.0 * static_cast<double>(npix_))));
  }
  for (const double value : correction_) column_factors_.push_back(static_cast<T>(value));
  reversed_factors_.assign(column_factors_.rbegin(), column_factors_.rend());
  for (std::int64_t v = -extent.last_v; v <= extent.last_v; ++v) {
    slots_.push_back(padded_rows_.transforms().slots()[static_cast<std::size_t>((v + 4 * npix_) % (2 * npix_))]);
  }
}

template <typename T>
void NufftGrid<T>::prepare() {
  while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) scratch_.push_back(padded_rows_.scratch());
  if (half_plane_.size() == 0) half_plane_ = AlignedArray<T>(panels() * padded_rows_.panel_distance());
}

/// The rows' factors: the window and the scale.
template <typename T>
std::vector<T> NufftGrid<T>::row_factors(double scale) const {
  std::vector<T> factors;
  factors.reserve(static_cast<std::size_t>(npix_));
  for (const double correction : correction_) factors.push_back(static_cast<T>(scale * correction));
  return factors;
}

template <typename T>
void NufftGrid<T>::from_image(const T* image, double scale, Complex* cells) {
  if (npix_ == image_npix_) return whole_from_image(image, scale, cells);
  std::vector<T> whole(static_cast<std::size_t>(npix_ * npix_));
  const auto margin = (npix_ - image_npix_) / 2;
  for (std::int64_t row = 0; row < image_npix_; ++row)
    std::copy_n(image + row * image_npix_, image_npix_, whole.data() + (row + margin) * npix_ + margin);
  whole_from_image(whole.data(), scale, cells);
}

/// Pixel npix/2 - 1 - n of a sky row lies at l = n dl; n is counted modulo 2 npix along the line.
template <typename T>
void NufftGrid<T>::whole_from_image(const T* image, double scale, Complex* cells) {
  prepare();
  const auto half = npix_ / 2;
  const auto factors = row_factors(scale);
  const auto load = [&](std::int64_t row, T* line) {
    const T* pixels = image + row * npix_;
    const T factor = factors[static_cast<std::size_t>(row)];
    reverse<T>(pixels, column_factors_.data() + half, factor, line, half);
    reverse<T>(pixels + half, column_factors_.data(), factor, line + 2 * npix_ - half, half);
  };
  padded_rows_.to_panels(kept_, load, half_plane_.data(), scratch_);
  share_tasks(panels(), 1, [&](std::int64_t panel, std::int64_t worker) { panel_from_image(panel, worker, cells); });
}

template <typename T>
void NufftGrid<T>::panel_from_image(std::int64_t panel, std::int64_t worker, Complex* cells) const {
  const auto first = panel * batch, kept = std::min(batch, kept_ - first);
  const auto& scratch = scratch_[static_cast<std::size_t>(worker)];
  T* transformed = scratch.panel.data();
  padded_rows_.transforms().forward_part(half_plane_.data() + panel * padded_rows_.panel_distance(), padded_rows_.support(),
                                         transformed, scratch.transform.data());
  padded_rows_.transforms().kernels().panel_to_columns(transformed, slots_.data(), rows(), column(cells, first), 2 * distance_,
                                                       kept);
  for (auto j = first; j < first + kept; ++j) {
    const auto mirror = [&](std::int64_t to) {
      const Complex* own = cells + (j + guard()) * distance_;
      Complex* other = cells + (to + guard()) * distance_;
      for (std::int64_t i = 0; i < rows(); ++i) other[i] = std::conj(own[rows() - 1 - i]);
    };
    if (j > 0 && j <= guard()) mirror(-j);
    if (j < npix_ && 2 * npix_ - j <= extent_.last_u) mirror(2 * npix_ - j);
  }
}

template <typename T>
void NufftGrid<T>::to_image(Complex* cells, double scale, T* image, Accumulate accumulate) {
  if (npix_ == image_npix_) return whole_to_image(cells, scale, image, accumulate);
  std::vector<T> whole(static_cast<std::size_t>(npix_ * npix_));
  whole_to_image(cells, scale, whole.data(), Accumulate::overwrite);
  const auto margin = (npix_ - image_npix_) / 2;
  for (std::int64_t row = 0; row < image_npix_; ++row) {
    const T* from = whole.data() + (row + margin) * npix_ + margin;
    T* to = image + row * image_npix_;
    for (std::int64_t i = 0; i < image_npix_; ++i) to[i] = accumulate == Accumulate::add ? to[i] + from[i] : from[i];
  }
}

template <typename T>
void NufftGrid<T>::whole_to_image(Complex* cells, double scale, T* image, Accumulate accumulate) {
  prepare();
  const auto half = npix_ / 2;
  share_tasks(panels(), 1, [&](std::int64_t panel, std::int64_t worker) { panel_to_image(panel, worker, cells); });
  const auto factors = row_factors(scale);
  const auto store = [&](std::int64_t row, const T* line) {
    T* pixels = image + row * npix_;
    const T* negative = line + 2 * npix_ - half;
    const T factor = factors[static_cast<std::size_t>(row)];
    const auto reverse_into = accumulate == Accumulate::add ? add_reversed<T> : reverse<T>;
    reverse_into(line, reversed_factors_.data(), factor, pixels, half);
    reverse_into(negative, reversed_factors_.data() + half, factor, pixels + half, half);
  };
  padded_rows_.from_panels(kept_, half_plane_.data(), store, scratch_);
}

/// Adds to a column what lies on cells that stand for the same: Hermitian partners in columns beyond the half plane, then rows
/// beyond the plane, which is 2 npix cells high.
template <typename T>
void NufftGrid<T>::fold_column(std::int64_t j, Complex* cells) const {
  const auto last_v = extent_.last_v;
  Complex* own = cells + (j + guard()) * distance_;
  const auto add_mirrored = [&](std::int64_t from) {
    const Complex* other = cells + (from + guard()) * distance_;
    for (std::int64_t i = 0; i < rows(); ++i) own[i] += std::conj(other[rows() - 1 - i]);
  };
  if (j > 0 && j <= guard()) add_mirrored(-j);
  if (j < npix_ && 2 * npix_ - j <= extent_.last_u) add_mirrored(2 * npix_ - j);
  for (std::int64_t v = npix_; v <= last_v; ++v) own[v - 2 * npix_ + last_v] += own[v + last_v];
  for (std::int64_t v = -last_v; v < -npix_; ++v) own[v + 2 * npix_ + last_v] += own[v + last_v];
}

template <typename T>
void NufftGrid<T>::panel_to_image(std::int64_t panel, std::int64_t worker, Complex* cells) const {
  constexpr auto row = PaddedRows<T>::row_size;
  const auto first = panel * batch, kept = std::min(batch, kept_ - first);
  const auto& scratch = scratch_[static_cast<std::size_t>(worker)];
  for (auto j = first; j < first + kept; ++j) fold_column(j, cells);
  T* transformed = scratch.panel.data();
  std::fill_n(transformed, 2 * npix_ * row, T(0));
  const auto beyond = std::max<std::int64_t>(extent_.last_v - npix_, 0);  // rows below -npix
  const auto within = std::min(rows(), 2 * npix_);
  padded_rows_.transforms().kernels().columns_to_panel(column(cells, first) + 2 * beyond, 2 * distance_, kept,
                                                       slots_.data() + beyond, within, transformed);
  padded_rows_.transforms().inverse_part(transformed, half_plane_.data() + panel * padded_rows_.panel_distance(),
                                         padded_rows_.support(), scratch.transform.data());
}

template <typename T>
std::int64_t NufftGrid<T>::memory_bytes() const {
  return static_cast<std::int64_t>(sizeof(T)) * panels() * padded_rows_.panel_distance();
}

template class NufftGrid<float>;
template class NufftGrid<double>;

}  // namespace mpol::ops
