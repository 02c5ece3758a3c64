#pragma once

// Kernels of FusedKernels on half spectra and their columns; for files that mpol_add_isa_sources compiles.
#include <cstring>

#include <mpol_cpp/ops/fused_kernels.h>
#include <mpol_cpp/ops/fused_vector.h>

namespace mpol::ops::MPOL_ISA {

/// A complex value as it lies in memory.
template <typename T>
struct Pair {
  T real, imag;
};

template <typename T>
MPOL_INLINE void copy_to_column(const Pair<T>* __restrict halves, std::int64_t half_distance, std::int64_t rows,
                                Pair<T>* __restrict column) {
  for (std::int64_t r = 0; r < rows; ++r) column[r] = halves[r * half_distance];
}

template <typename T>
MPOL_INLINE void copy_from_column(Pair<T>* __restrict halves, std::int64_t half_distance, std::int64_t rows,
                                  const Pair<T>* __restrict column) {
  for (std::int64_t r = 0; r < rows; ++r) halves[r * half_distance] = column[r];
}

template <typename T>
void to_columns(const T* halves, std::int64_t half_distance, std::int64_t rows, const std::int32_t* columns, std::int64_t count,
                T* spectrum, std::int64_t column_distance) {
  const auto* from = reinterpret_cast<const Pair<T>*>(halves);
  auto* to = reinterpret_cast<Pair<T>*>(spectrum);
  for (std::int64_t k = 0; k < count; ++k, to += column_distance) {
    if (rows == 8) copy_to_column<T>(from + columns[k], half_distance, 8, to);
    else copy_to_column<T>(from + columns[k], half_distance, rows, to);
  }
}

template <typename T>
void from_columns(T* halves, std::int64_t half_distance, std::int64_t rows, const std::int32_t* columns, std::int64_t count,
                  const T* spectrum, std::int64_t column_distance) {
  auto* to = reinterpret_cast<Pair<T>*>(halves);
  const auto* from = reinterpret_cast<const Pair<T>*>(spectrum);
  for (std::int64_t k = 0; k < count; ++k, from += column_distance) {
    if (rows == 8) copy_from_column<T>(to + columns[k], half_distance, 8, from);
    else copy_from_column<T>(to + columns[k], half_distance, rows, from);
  }
}

template <typename T>
double weigh_residual(T* column, std::int64_t n, const CellRange<T>& cells, double scale, double factor, T* scratch) {
  auto* __restrict values = reinterpret_cast<Pair<T>*>(column);
  T* __restrict real = scratch;
  T* __restrict imag = scratch + cells.count + row_margin;
  for (std::int64_t i = 0; i < cells.count; ++i) {
    real[i] = values[cells.row[i]].real;
    imag[i] = values[cells.row[i]].imag;
  }
  const T area = static_cast<T>(scale), slope = static_cast<T>(factor);
  Vector<T> chi_squared{};
  const auto weigh = [&](std::int64_t i, Vector<T> weight, Vector<T> data_real, Vector<T> data_imag)
      __attribute__((always_inline)) {
    const Vector<T> residual_real = area * load<T>(real + i) - data_real, residual_imag = area * load<T>(imag + i) - data_imag;
    chi_squared += weight != T(0) ? weight * (residual_real * residual_real + residual_imag * residual_imag) : Vector<T>{};
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
  std::memset(column, 0, static_cast<std::size_t>(n) * sizeof(Pair<T>));
  for (std::int64_t k = 0; k < cells.count; ++k) values[cells.row[k]] = {real[k], imag[k]};
  double sum = 0;
  for (int lane = 0; lane < lanes<T>; ++lane) sum += static_cast<double>(chi_squared[lane]);
  return sum;
}

template <typename T>
double weigh_power(const T* __restrict column, std::int64_t n, const T* __restrict inverse_power, double factor,
                   T* __restrict slopes) {
  constexpr int sums = 8;
  const T slope = static_cast<T>(factor);
  double sum[sums] = {};
  const auto weigh = [&](std::int64_t i, double& into) __attribute__((always_inline)) {
    const T real = column[2 * i], imag = column[2 * i + 1], weight = inverse_power[i];
    slopes[2 * i] = slope * weight * real;
    slopes[2 * i + 1] = slope * weight * imag;
    into += static_cast<double>(weight) * static_cast<double>(real * real + imag * imag);
  };
  std::int64_t i = 0;
  for (; i + sums <= n; i += sums) {
    for (int k = 0; k < sums; ++k) weigh(i + k, sum[k]);
  }
  for (; i < n; ++i) weigh(i, sum[0]);
  for (int k = 1; k < sums; ++k) sum[0] += sum[k];
  return sum[0];
}

template <typename T>
void add_column(T* __restrict column, const T* __restrict values, std::int64_t n) {
  for (std::int64_t i = 0; i < 2 * n; ++i) column[i] += values[i];
}

}  // namespace mpol::ops::MPOL_ISA
