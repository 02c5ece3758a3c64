#include <mpol_cpp/ops/fused_passes.h>

#include <cmath>
#include <cstring>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::ops::detail {

template <typename T>
FusedGeometry FusedGeometry::of(std::int64_t npix) {
  using Real = AlignedArray<T>;
  using Complex = AlignedArray<std::complex<T>>;
  FusedGeometry geometry{};
  geometry.npix = npix;
  geometry.row_distance = Real::padded(npix);
  geometry.half_distance = Complex::padded(npix / 2 + 1);
  geometry.column_distance = Complex::padded(npix) + Complex::line;  // neighbours never a power of two apart
  geometry.rows_per_block = npix <= 1024 ? 32 : 64;
  geometry.blocks = (npix + geometry.rows_per_block - 1) / geometry.rows_per_block;
  return geometry;
}

template <typename T>
RowScratch<T>::RowScratch(const FusedGeometry& geometry, std::int64_t cells_per_column, bool has_power)
    : distance_(geometry.row_distance + 2 * row_margin),
      rows_(row_count * distance_),
      lines_(LineTransforms<T>::batch * geometry.row_distance),
      cells_(2 * (AlignedArray<T>::padded(cells_per_column) + row_margin)),
      halves_(LineTransforms<T>::batch * geometry.half_distance),
      power_(has_power ? 2 * geometry.column_distance : 0) {}

template <typename T>
FusedPasses<T>::FusedPasses(const FusedSettings& settings, std::vector<ColumnCells<T>> cells, GradientOf likelihood)
    : settings_(settings),
      geometry_(FusedGeometry::of<T>(settings.npix)),
      cells_(std::move(cells)),
      kernels_(fused_kernels<T>(settings.isa)),
      fft_(plan_line_transforms<T>({settings.npix, geometry_.row_distance, geometry_.half_distance}, settings.fft)),
      images_(images() * settings.npix * geometry_.row_distance + row_margin) {
  if (likelihood == GradientOf::images) gradients_ = AlignedArray<T>(images_.size());
  if (settings_.own.empty()) {
    settings_.own.assign(static_cast<std::size_t>(settings.problems), {settings.likelihood_scale, settings.terms});
  }
  if (has_power()) prepare_power();
  for (std::int64_t image = 0; image < images(); ++image) {
    first_column_.push_back(columns());
    const auto& begin = cells_of(image).begin;
    for (std::size_t k = 0; k + 1 < begin.size(); ++k) {
      places_.push_back({image, static_cast<std::int64_t>(k)});
      cells_per_column_ = std::max<std::int64_t>(cells_per_column_, begin[k + 1] - begin[k]);
    }
  }
  first_column_.push_back(columns());
  spectra_ = AlignedArray<std::complex<T>>(columns() * geometry_.column_distance);
}

template <typename T>
bool FusedPasses<T>::has_power() const {
  return std::any_of(settings_.own.begin(), settings_.own.end(), [](const auto& problem) { return problem.terms.psd > 0; });
}

template <typename T>
void FusedPasses<T>::prepare_power() {
  const std::int64_t npix = geometry_.npix, half = npix / 2 + 1, distance = geometry_.column_distance;
  if (!settings_.inverse_power.defined() || settings_.inverse_power.sizes() != torch::IntArrayRef({npix, half})) {
    throw ValueError(fmt::format("the power spectrum needs inverse_power of shape ({}, {})", npix, half));
  }
  for (auto& channel : cells_) channel = with_every_column(channel, half);
  inverse_power_ = AlignedArray<T>(half * distance);
  const auto by_column =
      (settings_.inverse_power.to(torch::kCPU, torch::kFloat64) * std::pow(settings_.cell_area, 2)).t().contiguous();
  const auto* value = by_column.const_data_ptr<double>();
  for (std::int64_t column = 0; column < half; ++column) {
    for (std::int64_t row = 0; row < npix; ++row) {
      inverse_power_.data()[column * distance + row] = static_cast<T>(value[column * npix + row]);
    }
  }
}

template <typename T>
std::complex<T>* FusedPasses<T>::spectrum(std::int64_t image) const {
  return spectra_.data() + first_column(image) * geometry_.column_distance;
}

template <typename T>
void FusedPasses<T>::map_rows(const T* base, std::int64_t image, std::int64_t block, const RowScratch<T>& scratch) {
  const std::int64_t npix = geometry_.npix, first = geometry_.first_row(block), end = geometry_.end_row(block);
  const auto& cells = cells_of(image);
  const auto columns = static_cast<std::int64_t>(cells.columns.size());
  const auto smoothed = [&](std::int64_t row) { return row < 0 || row >= npix ? scratch.zeros() : scratch.smoothed(row); };
  const auto map = [&](std::int64_t row) {
    if (row < 0 || row >= npix) return;
    kernels_.map_row(base + (image * npix + row) * npix, scratch.mapped(), scratch.smoothed(row), npix);
  };
  map(first - 1);
  map(first);
  for (std::int64_t row = first; row < end; row += LineTransforms<T>::batch) {
    const auto count = std::min(LineTransforms<T>::batch, end - row);
    for (std::int64_t r = row; r < row + count; ++r) {
      map(r + 1);
      kernels_.blend_rows(smoothed(r - 1), smoothed(r), smoothed(r + 1), image_row(image, r), npix);
    }
    if (columns == 0) continue;
    fft_->forward_rows(image_row(image, row), scratch.halves(), count);
    kernels_.to_columns(reinterpret_cast<const T*>(scratch.halves()), geometry_.half_distance, count, cells.columns.data(),
                        columns, reinterpret_cast<T*>(spectrum(image) + row), geometry_.column_distance);
  }
}

template <typename T>
ColumnSums FusedPasses<T>::weigh_column(std::int64_t column, const RowScratch<T>& scratch) {
  const auto [image, index] = places_[static_cast<std::size_t>(column)];
  const auto& problem = problem_of(image);
  const auto& cells = cells_of(image);
  const auto k = static_cast<std::size_t>(index);
  const auto begin = static_cast<std::size_t>(cells.begin[k]);
  const CellRange<T> range{cells.row.data() + begin, cells.weight.data() + begin, cells.real.data() + begin,
                           cells.imag.data() + begin, cells.begin[k + 1] - cells.begin[k]};
  // Columns 0 and npix/2 of the half plane stand for one column of the full plane, the others for two.
  const double share = cells.columns[k] == 0 || 2 * cells.columns[k] == geometry_.npix ? 1.0 : 0.5;
  auto* line = spectra_.data() + column * geometry_.column_distance;
  auto* values = reinterpret_cast<T*>(line);
  ColumnSums sums;
  fft_->forward_column(line);
  if (has_power()) {
    const auto* inverse_power = inverse_power_.data() + cells.columns[k] * geometry_.column_distance;
    // The inverse real transform counts these columns twice, as the sum over the full plane does.
    sums.psd = kernels_.weigh_power(values, geometry_.npix, inverse_power, 2.0 * problem.terms.psd, scratch.power()) / share;
  }
  sums.chi_squared = kernels_.weigh_residual(values, geometry_.npix, range, settings_.cell_area,
                                             2.0 * problem.likelihood_scale * settings_.cell_area * share, scratch.cells());
  if (has_power()) kernels_.add_column(values, scratch.power(), geometry_.npix);
  fft_->inverse_column(line);
  return sums;
}

template <typename T>
void FusedPasses<T>::likelihood_rows(std::int64_t image, std::int64_t first, std::int64_t count, const RowScratch<T>& scratch) {
  rows_of_columns(image, first, count, scratch);
  if (gradients_.size() == 0) return;
  const T scale = static_cast<T>(problem_of(image).likelihood_scale);
  const T* gradient = gradients_.data() + row_offset(image, first);
  T* lines = scratch.lines();
  for (std::int64_t i = 0; i < count * geometry_.row_distance; ++i) lines[i] += scale * gradient[i];
}

template <typename T>
void FusedPasses<T>::rows_of_columns(std::int64_t image, std::int64_t first, std::int64_t count, const RowScratch<T>& scratch) {
  const auto& cells = cells_of(image);
  const auto columns = static_cast<std::int64_t>(cells.columns.size());
  if (columns == 0) {
    std::memset(scratch.lines(), 0, static_cast<std::size_t>(count * geometry_.row_distance) * sizeof(T));
    return;
  }
  const std::int64_t nyquist = geometry_.npix / 2, distance = geometry_.half_distance;
  auto* halves = scratch.halves();
  if (columns <= nyquist)
    std::memset(static_cast<void*>(halves), 0, static_cast<std::size_t>(count * distance) * sizeof(*halves));
  kernels_.from_columns(reinterpret_cast<T*>(halves), distance, count, cells.columns.data(), columns,
                        reinterpret_cast<const T*>(spectrum(image) + first), geometry_.column_distance);
  for (std::int64_t r = 0; r < count; ++r) {
    halves[r * distance].imag(0);
    halves[r * distance + nyquist].imag(0);
  }
  fft_->inverse_rows(halves, scratch.lines(), count);
}

template <typename T>
void FusedPasses<T>::difference_row(std::int64_t image, std::int64_t row, const RowScratch<T>& scratch, RowSums& sums) {
  const auto& terms = problem_of(image).terms;
  if (!has_differences(terms) || row < 0 || row + 1 >= geometry_.npix) return;
  const auto* pixels = std::as_const(*this).image_row(image, row);
  kernels_.differences(pixels, pixels + geometry_.row_distance, scratch.along(), scratch.across(row), geometry_.npix, terms,
                       sums);
}

template <typename T>
void FusedPasses<T>::clamp_edges(std::int64_t image, std::int64_t row, T* gradient, RowSums& sums) const {
  const auto npix = geometry_.npix;
  const auto* pixels = image_row(image, row);
  const T slope = static_cast<T>(2 * problem_of(image).terms.edge_clamp);
  const auto clamp = [&](std::int64_t column) {
    gradient[column] += slope * pixels[column];
    sums.edge_clamp += static_cast<double>(pixels[column]) * static_cast<double>(pixels[column]);
  };
  if (row == 0 || row == npix - 1) {
    for (std::int64_t column = 0; column < npix; ++column) clamp(column);
  }
  clamp(0);
  clamp(npix - 1);
}

template <typename T>
void FusedPasses<T>::gradient_row(std::int64_t image, std::int64_t row, const T* likelihood, const RowScratch<T>& scratch,
                                  RowSums& sums) {
  const auto npix = geometry_.npix;
  const auto& terms = problem_of(image).terms;
  const bool last_row = row == npix - 1;
  const T* along = !has_differences(terms) ? nullptr : (last_row ? scratch.zeros() : scratch.along());
  const T* across = last_row ? scratch.zeros() : scratch.across(row);
  const T* across_below = row == 0 ? scratch.zeros() : scratch.across(row - 1);
  auto* gradient = scratch.gradient(row);
  const auto* pixels = std::as_const(*this).image_row(image, row);
  kernels_.image_gradient(pixels, likelihood, along, across, across_below, gradient, npix, terms, sums);
  if (terms.tv_channel > 0) {
    const auto channel = image % settings_.nchan, distance = npix * geometry_.row_distance;
    kernels_.channel_gradient(pixels, channel > 0 ? pixels - distance : nullptr,
                              channel + 1 < settings_.nchan ? pixels + distance : nullptr, gradient, npix, terms, sums);
  }
  if (terms.edge_clamp > 0) clamp_edges(image, row, gradient, sums);
}

template <typename T>
void FusedPasses<T>::finish_rows(FusedUpdate kind, const UpdateRow<T>& pixels, const UpdateSettings& update, std::int64_t image,
                                 std::int64_t block, const RowScratch<T>& scratch, RowSums& sums) {
  const std::int64_t npix = geometry_.npix, first = geometry_.first_row(block), end = geometry_.end_row(block);
  const std::int64_t from = std::max<std::int64_t>(first - 1, 0), to = std::min(end + 1, npix);  // one more row each way
  RowSums of_neighbours;
  const auto sums_of = [&](std::int64_t row) -> RowSums& { return row >= first && row < end ? sums : of_neighbours; };
  const auto gradient = [&](std::int64_t row) { return row < 0 || row >= npix ? scratch.zeros() : scratch.gradient(row); };
  const auto finish = [&](std::int64_t row) {
    if (row < first || row >= end) return;
    const auto offset = (image * npix + row) * npix;
    const auto at = [&](T* array) { return array != nullptr ? array + offset : nullptr; };
    kernels_.update(kind, gradient(row - 1), gradient(row), gradient(row + 1), scratch.blended(),
                    {at(pixels.base), at(pixels.first), at(pixels.second), at(pixels.gradient)}, npix, update, sums.parameters);
  };
  difference_row(image, from - 1, scratch, of_neighbours);
  for (std::int64_t row = from; row < to; row += LineTransforms<T>::batch) {
    const auto count = std::min(LineTransforms<T>::batch, to - row);
    likelihood_rows(image, row, count, scratch);
    for (std::int64_t r = row; r < row + count; ++r) {
      difference_row(image, r, scratch, sums_of(r));
      gradient_row(image, r, scratch.lines() + (r - row) * geometry_.row_distance, scratch, sums_of(r));
      finish(r - 1);
    }
  }
  if (end == npix) finish(npix - 1);
}

template class RowScratch<float>;
template class RowScratch<double>;
template class FusedPasses<float>;
template class FusedPasses<double>;

}  // namespace mpol::ops::detail
