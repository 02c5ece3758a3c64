#include <mpol_cpp/ops/fused/cpu/fused_passes.h>

#include <cmath>
#include <cstring>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/gpu/gpu_math.h>

namespace mpol::ops::detail {

template <typename T>
FusedGeometry FusedGeometry::of(std::int64_t npix) {
  // A block is finished together with a row on each side: with them it is so many whole batches.
  const std::int64_t most_rows = npix <= 1024 ? 30 : 62;
  FusedGeometry geometry{};
  geometry.npix = npix;
  // Neighbours are never a power of two apart, which would have to share a few places of the cache.
  geometry.row_distance = AlignedArray<T>::padded(npix) + AlignedArray<T>::line;
  geometry.panel_distance = (npix + 8) * LineTransforms<T>::row_size;
  geometry.blocks = (npix + most_rows - 1) / most_rows;
  geometry.rows_per_block = (npix + geometry.blocks - 1) / geometry.blocks;
  return geometry;
}

template <typename T>
RowScratch<T>::RowScratch(const FusedGeometry& geometry, std::int64_t transform_size, std::int64_t cells_per_panel, Extras extras)
    : distance_(geometry.row_distance + 2 * row_margin),
      rows_(row_count * distance_),
      lines_(LineTransforms<T>::batch * geometry.row_distance),
      transform_(transform_size),
      cells_(2 * (AlignedArray<T>::padded(cells_per_panel) + row_margin)),
      power_(extras.power ? geometry.panel_distance : 0),
      bends_(extras.curvatures ? 12 * distance_ : 0) {}

template <typename T>
FusedPasses<T>::FusedPasses(const FusedSettings& settings, const std::vector<ColumnCells<T>>& cells, GradientOf likelihood)
    : settings_(settings),
      geometry_(FusedGeometry::of<T>(settings.npix)),
      fft_(settings.npix, settings.isa),
      kernels_(fused_kernels<T>(settings.isa)),
      images_(images() * settings.npix * geometry_.row_distance + row_margin) {
  if (likelihood == GradientOf::images) gradients_ = AlignedArray<T>(images() * settings.npix * settings.npix);
  if (settings_.own.empty()) {
    settings_.own.assign(static_cast<std::size_t>(settings.problems), {settings.likelihood_scale, settings.terms});
  }
  for (auto& own : settings_.own) own.terms.values = own.terms.values.prepared();
  if (has_power()) prepare_power();
  if (any_uses<regularizers::Driver::spectra>()) {
    squares_ = AlignedArray<T>(settings.problems * settings.npix * geometry_.row_distance + row_margin);
  }
  for (const auto& own : cells) {
    // The regularizer of the half plane needs the columns without data too.
    cells_.push_back(panel_cells(has_power() ? with_every_column(own, settings.npix / 2 + 1) : own, fft_.slots()));
  }
  for (std::int64_t image = 0; image < images(); ++image) {
    first_panel_.push_back(panels());
    const auto& begin = cells_of(image).begin;
    for (std::size_t k = 0; k + 1 < begin.size(); ++k) {
      places_.push_back({image, static_cast<std::int64_t>(k)});
      cells_per_panel_ = std::max<std::int64_t>(cells_per_panel_, begin[k + 1] - begin[k]);
    }
  }
  first_panel_.push_back(panels());
  spectra_ = AlignedArray<T>(panels() * geometry_.panel_distance);
}

template <typename T>
template <regularizers::Driver driver>
bool FusedPasses<T>::any_uses() const {
  return std::any_of(settings_.own.begin(), settings_.own.end(), [](const auto& own) { return in_use<driver>(own.terms); });
}

template <typename T>
void FusedPasses<T>::prepare_power() {
  constexpr auto batch = LineTransforms<T>::batch;
  const std::int64_t npix = geometry_.npix, half = npix / 2 + 1;
  if (!settings_.inverse_power.defined() || settings_.inverse_power.sizes() != torch::IntArrayRef({npix, half})) {
    throw ValueError(fmt::format("the regularizer of the half plane needs inverse_power of shape ({}, {})", npix, half));
  }
  inverse_power_ = AlignedArray<T>(fft_.panels(half) * npix * batch);
  const auto scaled = (settings_.inverse_power.to(torch::kCPU, torch::kFloat64) * std::pow(settings_.cell_area, 2)).contiguous();
  const auto* value = scaled.template const_data_ptr<double>();
  for (std::int64_t row = 0; row < npix; ++row) {
    for (std::int64_t column = 0; column < half; ++column) {
      const double stands_for = column == 0 || 2 * column == npix ? 1 : 2;
      const auto place = (column / batch * npix + fft_.slots()[static_cast<std::size_t>(row)]) * batch + column % batch;
      inverse_power_.data()[place] = static_cast<T>(stands_for * value[row * half + column]);
    }
  }
}

template <typename T>
FftPanels<T> FusedPasses<T>::panels_of(std::int64_t image, std::int64_t row) const {
  const auto& columns = cells_of(image).columns;
  return {columns.data(), static_cast<std::int64_t>(columns.size()),
          spectra_.data() + first_panel(image) * geometry_.panel_distance + row * LineTransforms<T>::row_size,
          geometry_.panel_distance};
}

template <typename T>
void FusedPasses<T>::map_rows(const T* base, std::int64_t image, std::int64_t block, const RowScratch<T>& scratch) {
  const std::int64_t npix = geometry_.npix, first = geometry_.first_row(block), end = geometry_.end_row(block);
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
    const auto panels = panels_of(image, row);
    if (panels.count == 0) continue;
    fft_.forward_rows(image_row(image, row), geometry_.row_distance, count, fft_.everything(), panels, scratch.transform());
  }
}

template <typename T>
void FusedPasses<T>::square_rows(std::int64_t problem, std::int64_t block) {
  for (auto row = geometry_.first_row(block); row < geometry_.end_row(block); ++row) {
    kernels_.spectrum_squares(channel_rows(problem * settings_.nchan, row), squares_row(problem, row), geometry_.npix);
  }
}

template <typename T>
PanelSums FusedPasses<T>::weigh_panel(std::int64_t panel, const RowScratch<T>& scratch) {
  const auto [image, index] = places_[static_cast<std::size_t>(panel)];
  const auto npix = geometry_.npix;
  const auto& problem = problem_of(image);
  const auto& cells = cells_of(image);
  const auto begin = cells.begin[static_cast<std::size_t>(index)];
  const CellRange<T> range{cells.place.data() + begin, cells.weight.data() + begin, cells.real.data() + begin,
                           cells.imag.data() + begin, cells.begin[static_cast<std::size_t>(index) + 1] - begin};
  T* values = spectra_.data() + panel * geometry_.panel_distance;
  PanelSums sums;
  fft_.forward_panel(values, scratch.transform());
  if (has_power()) {
    const T* weight = inverse_power_.data() + index * npix * LineTransforms<T>::batch;
    sums.power = kernels_.weigh_power(values, npix, weight, problem.terms, scratch.power());
  }
  sums.chi_squared = kernels_.weigh_residual(values, npix, range, settings_.cell_area,
                                             2.0 * problem.likelihood_scale * settings_.cell_area, scratch.cells());
  if (has_power()) kernels_.add_panel(values, scratch.power(), npix);
  fft_.inverse_panel(values, scratch.transform());
  return sums;
}

template <typename T>
void FusedPasses<T>::likelihood_rows(std::int64_t image, std::int64_t first, std::int64_t count, const RowScratch<T>& scratch) {
  const auto panels = panels_of(image, first);
  if (panels.count > 0) {
    fft_.adjoint_rows(panels, scratch.lines(), geometry_.row_distance, count, fft_.everything(), scratch.transform());
  } else {
    std::memset(scratch.lines(), 0, static_cast<std::size_t>(count * geometry_.row_distance) * sizeof(T));
  }
  if (gradients_.size() == 0) return;
  const T scale = static_cast<T>(problem_of(image).likelihood_scale);
  const auto npix = geometry_.npix;
  for (std::int64_t row = 0; row < count; ++row) {
    const T* gradient = gradients_.data() + (image * npix + first + row) * npix;
    T* line = scratch.lines() + row * geometry_.row_distance;
    for (std::int64_t i = 0; i < npix; ++i) line[i] += scale * gradient[i];
  }
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
void FusedPasses<T>::bend_row(std::int64_t image, std::int64_t row, const RowScratch<T>& scratch, RowSums& sums) {
  const auto& terms = problem_of(image).terms;
  const auto npix = geometry_.npix;
  if (!in_use<regularizers::Driver::curvatures>(terms) || row < 0 || row >= npix) return;
  const auto slopes = scratch.bends(row);
  if (row == 0 || row == npix - 1) {
    for (T* values : {slopes.rows, slopes.columns, slopes.mixed}) std::fill_n(values, geometry_.row_distance, T(0));
    return;
  }
  const auto pixels = [&](std::int64_t r) { return std::as_const(*this).image_row(image, r); };
  kernels_.curvatures(pixels(row - 1), pixels(row), pixels(row + 1), slopes, npix, terms, sums);
}

template <typename T>
void FusedPasses<T>::add_curvatures(std::int64_t row, T* gradient, const RowScratch<T>& scratch) const {
  const auto npix = geometry_.npix;
  const CurvatureRow<const T> beyond{scratch.zeros(), scratch.zeros(), scratch.zeros()};
  const auto slopes = [&](std::int64_t r) -> CurvatureRow<const T> {
    if (r < 0 || r >= npix) return beyond;
    return scratch.bends(r);
  };
  kernels_.curvature_gradient(slopes(row - 1), slopes(row), slopes(row + 1), gradient, npix);
}

template <typename T>
void FusedPasses<T>::add_edges(std::int64_t image, std::int64_t row, T* gradient, RowSums& sums) const {
  const auto npix = geometry_.npix;
  const auto* pixels = image_row(image, row);
  const auto& terms = problem_of(image).terms;
  regularizers::for_each(regularizers::KindsOf<regularizers::Driver::edges>{}, [&](auto constant) {
    constexpr auto kind = decltype(constant)::value;
    if (!(terms.weight(kind) > 0)) return;
    using regularizers::Formulas, regularizers::Kinds;
    const Formulas<T, Kinds<kind>> formulas(terms);
    const Formulas<double, Kinds<kind>> precise(terms);
    const auto at = [&](std::int64_t column) {
      gradient[column] += formulas.own.template at<gpu_math::ScalarMath<T>>(pixels[column]).slope;
      sums.terms[static_cast<int>(kind)].lane[0] +=
          precise.own.template at<gpu_math::ScalarMath<double>>(static_cast<double>(pixels[column])).value;
    };
    if (row == 0 || row == npix - 1) {
      for (std::int64_t column = 0; column < npix; ++column) at(column);
    }
    at(0);
    at(npix - 1);
  });
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
  if (in_use<regularizers::Driver::curvatures>(terms)) add_curvatures(row, gradient, scratch);
  if (in_use<regularizers::Driver::channels>(terms)) {
    kernels_.channel_gradient(channel_rows(image, row), gradient, npix, terms, sums);
  }
  if (in_use<regularizers::Driver::spectra>(terms)) {
    kernels_.spectrum_gradient(channel_rows(image, row), squares_row(image / settings_.nchan, row), gradient, npix, terms, sums);
  }
  if (in_use<regularizers::Driver::edges>(terms)) add_edges(image, row, gradient, sums);
}

template <typename T>
void FusedPasses<T>::finish_rows(FusedUpdate kind, const UpdateRow<T>& pixels, const UpdateSettings& update, std::int64_t image,
                                 std::int64_t block, const RowScratch<T>& scratch, RowSums& sums) {
  const std::int64_t npix = geometry_.npix, first = geometry_.first_row(block), end = geometry_.end_row(block);
  const std::int64_t from = std::max<std::int64_t>(first - 1, 0), to = std::min(end + 1, npix);  // one more row each way
  RowSums of_neighbors;
  const auto sums_of = [&](std::int64_t row) -> RowSums& { return row >= first && row < end ? sums : of_neighbors; };
  const auto gradient = [&](std::int64_t row) { return row < 0 || row >= npix ? scratch.zeros() : scratch.gradient(row); };
  const auto finish = [&](std::int64_t row) {
    if (row < first || row >= end) return;
    const auto offset = (image * npix + row) * npix;
    const auto at = [&](T* array) { return array != nullptr ? array + offset : nullptr; };
    kernels_.update(kind, gradient(row - 1), gradient(row), gradient(row + 1), scratch.blended(),
                    {at(pixels.base), at(pixels.first), at(pixels.second), at(pixels.gradient)}, npix, update, sums.parameters);
  };
  difference_row(image, from - 1, scratch, of_neighbors);
  for (const auto row : {from - 1, from}) bend_row(image, row, scratch, sums_of(row));
  for (std::int64_t row = from; row < to; row += LineTransforms<T>::batch) {
    const auto count = std::min(LineTransforms<T>::batch, to - row);
    likelihood_rows(image, row, count, scratch);
    for (std::int64_t r = row; r < row + count; ++r) {
      difference_row(image, r, scratch, sums_of(r));
      bend_row(image, r + 1, scratch, sums_of(r + 1));
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
