// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/fft/fft_transposition.h>
#include <mpol_cpp/ops/fused/cpu/fused_row_kernels.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_row_kernels.h>

namespace mpol::ops::MPOL_ISA {
namespace {

template <typename T>
MPOL_INLINE Wide<T> wide_at(const T* from, std::int64_t count) {
  return widened<T>(load_first<T>(from, count));
}

template <typename T>
MPOL_INLINE void add_product(Wide<T>& sum, const Wide<T>& a, const Wide<T>& b) {
  for (std::int64_t part = 0; part < Wide<T>::parts; ++part) sum.part[part] += a.part[part] * b.part[part];
}

template <typename T>
LbfgsSlope measure(const T* gradient, const T* direction, std::int64_t n) {
  Wide<T> slope{}, magnitudes{};
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto own = wide_at<T>(gradient + i, count);
        add_product<T>(slope, own, wide_at<T>(direction + i, count));
        for (std::int64_t part = 0; part < Wide<T>::parts; ++part) magnitudes.part[part] += magnitude<double>(own.part[part]);
      });
  return {sum_of<T>(slope), sum_of<T>(magnitudes)};
}

template <typename T>
void correlate(const LbfgsHistory<T>& history, const T* gradient, const T* latest, std::int64_t n, double* products) {
  for (std::int64_t k = 0; k < history.pairs; ++k) {
    const T *move = history.moves[k] + history.first, *change = history.changes[k] + history.first;
    Wide<T> sums[4] = {};
    each_vector<T>(
        n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
          const auto s = wide_at<T>(move + i, count), y = wide_at<T>(change + i, count);
          const auto g = wide_at<T>(gradient + i, count), last = wide_at<T>(latest + i, count);
          add_product<T>(sums[0], s, g);
          add_product<T>(sums[1], y, g);
          add_product<T>(sums[2], s, last);
          add_product<T>(sums[3], y, last);
        });
    for (int q = 0; q < 4; ++q) products[4 * k + q] = sum_of<T>(sums[q]);
  }
}

/// sums += factors of `pairs` pairs times s and y.
template <typename T, int pairs>
MPOL_INLINE void add_pairs(const LbfgsHistory<T>& history, std::int64_t k, const double* move_factors,
                           const double* change_factors, std::int64_t n, double* sums) {
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        Wide<T> sum;
        for (std::int64_t part = 0; part < Wide<T>::parts; ++part) sum.part[part] = load<double>(sums + i + part * lanes<double>);
#pragma GCC unroll 4
        for (int p = 0; p < pairs; ++p) {
          const auto s = wide_at<T>(history.moves[k + p] + history.first + i, count);
          const auto y = wide_at<T>(history.changes[k + p] + history.first + i, count);
          for (std::int64_t part = 0; part < Wide<T>::parts; ++part) {
            sum.part[part] += move_factors[k + p] * s.part[part] + change_factors[k + p] * y.part[part];
          }
        }
        for (std::int64_t part = 0; part < Wide<T>::parts; ++part) store<double>(sums + i + part * lanes<double>, sum.part[part]);
      });
}

template <typename T>
LbfgsDescent steer(const LbfgsHistory<T>& history, const double* move_factors, const double* change_factors, const T* gradient,
                   double factor, T* direction, std::int64_t n, double* sums) {
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto g = wide_at<T>(gradient + i, count);
        for (std::int64_t part = 0; part < Wide<T>::parts; ++part)
          store<double>(sums + i + part * lanes<double>, factor * g.part[part]);
      });
  std::int64_t k = 0;
  for (; k + 2 <= history.pairs; k += 2) add_pairs<T, 2>(history, k, move_factors, change_factors, n, sums);
  if (k < history.pairs) add_pairs<T, 1>(history, k, move_factors, change_factors, n, sums);
  for (std::int64_t i = 0; i < n; ++i) direction[i] = static_cast<T>(sums[i]);
  Wide<T> slope{}, largest{};
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto own = wide_at<T>(direction + i, count);
        add_product<T>(slope, own, wide_at<T>(gradient + i, count));
        for (std::int64_t part = 0; part < Wide<T>::parts; ++part) {
          const Vector<double> size = magnitude<double>(own.part[part]);
          largest.part[part] = size > largest.part[part] ? size : largest.part[part];
        }
      });
  double most = 0;
  for (std::int64_t part = 0; part < Wide<T>::parts; ++part) {
    for (int lane = 0; lane < lanes<double>; ++lane) most = largest.part[part][lane] > most ? largest.part[part][lane] : most;
  }
  return {sum_of<T>(slope), most};
}

}  // namespace

template <typename T>
LbfgsRowKernels<T> lbfgs_row_kernels() {
  return {measure<T>, correlate<T>, steer<T>};
}

template LbfgsRowKernels<float> lbfgs_row_kernels();
template LbfgsRowKernels<double> lbfgs_row_kernels();

}  // namespace mpol::ops::MPOL_ISA
