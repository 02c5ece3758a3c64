#pragma once

// Kernels of FusedKernels on panels of transformed columns; for files that mpol_add_isa_sources compiles.
#include <cstring>

#include <mpol_cpp/ops/fft/fft_kernels.h>
#include <mpol_cpp/ops/fused/cpu/fused_row_kernels.h>

namespace mpol::ops::MPOL_ISA {

template <typename T>
double weigh_residual(T* panel, std::int64_t n, const CellRange<T>& cells, double scale, double factor, T* scratch) {
  const auto* __restrict place = cells.place;
  T* __restrict real = scratch;
  T* __restrict imag = scratch + cells.count + row_margin;
  for (std::int64_t i = 0; i < cells.count; ++i) {
    real[i] = panel[place[i]];
    imag[i] = panel[place[i] + fft_batch<T>];
  }
  const T area = static_cast<T>(scale), slope = static_cast<T>(factor);
  LaneSum chi_squared;
  const auto weigh = [&](std::int64_t i, Vector<T> weight, Vector<T> data_real, Vector<T> data_imag)
      __attribute__((always_inline)) {
    const Vector<T> residual_real = area * load<T>(real + i) - data_real, residual_imag = area * load<T>(imag + i) - data_imag;
    add_to<T>(chi_squared,
              weight != T(0) ? weight * (residual_real * residual_real + residual_imag * residual_imag) : Vector<T>{});
    store<T>(real + i, slope * weight * residual_real);
    store<T>(imag + i, slope * weight * residual_imag);
  };
  std::int64_t i = 0;
  for (; i + lanes<T> <= cells.count; i += lanes<T>) {
    weigh(i, load<T>(cells.weight + i), load<T>(cells.real + i), load<T>(cells.imag + i));
  }
  if (const auto rest = cells.count - i; rest > 0) {
    weigh(i, load_part<T>(cells.weight + i, rest), load_part<T>(cells.real + i, rest), load_part<T>(cells.imag + i, rest));
  }
  std::memset(panel, 0, static_cast<std::size_t>(n * 2 * fft_batch<T>) * sizeof(T));
  for (std::int64_t k = 0; k < cells.count; ++k) {
    panel[place[k]] = real[k];
    panel[place[k] + fft_batch<T>] = imag[k];
  }
  return chi_squared.total();
}

template <typename T>
double weigh_power(const T* __restrict panel, std::int64_t n, const T* __restrict weight, const FusedTerms& terms,
                   T* __restrict slopes) {
  static_assert(KindsOf<Driver::half_plane>::count == 1, "one table of weights is for one regularizer");
  const Formulas<T, KindsOf<Driver::half_plane>> formulas(terms);
  LaneSum power;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
      const auto own = load<T>(weight + row * fft_batch<T> + lane);
      const auto at = 2 * row * fft_batch<T> + lane;
      const auto real = load<T>(panel + at), imag = load<T>(panel + at + fft_batch<T>);
      const auto found = formulas.own.template at<VectorMath<T>>(own, real, imag);
      store<T>(slopes + at, found.real);
      store<T>(slopes + at + fft_batch<T>, found.imag);
      add_to<T>(power, found.value);
    }
  }
  return power.total();
}

template <typename T>
void add_panel(T* __restrict panel, const T* __restrict values, std::int64_t n) {
  for (std::int64_t i = 0; i < 2 * n * fft_batch<T>; ++i) panel[i] += values[i];
}

}  // namespace mpol::ops::MPOL_ISA
