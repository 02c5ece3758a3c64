// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/fft/fft_transposition.h>
#include <mpol_cpp/ops/simd/wide.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_kernels.h>

namespace mpol::ops::MPOL_ISA {
namespace {

template <typename T>
void multiply_panel(T* panel, const std::int32_t* rows, std::int64_t count, const T* kernel, std::int64_t kept,
                    const T* factors) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  Vector<T> block[lanes<T>];
  for (std::int64_t lane = 0; lane < kept; lane += lanes<T>) {
    const auto factor = load<T>(factors + lane);
    const T* columns = kernel + lane * count;
    for (std::int64_t k = 0; k < count; k += lanes<T>) {
      if (kept - lane >= lanes<T> && count - k >= lanes<T>) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes<T>; ++i) block[i] = load<T>(columns + i * count + k);
      } else {
        for (int i = 0; i < lanes<T>; ++i) block[i] = load_first<T>(columns + i * count + k, lane + i < kept ? count - k : 0);
      }
      transpose<T>(block);
#pragma GCC unroll 16
      for (int i = 0; i < lanes<T>; ++i) {
        if (k + i >= count) break;
        T* value = panel + rows[k + i] * row + lane;
        const auto old = load_complex<T>(value);
        const auto weight = factor * block[i];
        store_complex<T>(value, {old.re * weight, old.im * weight});
      }
    }
  }
}

template <typename T>
QuadraticSums quadratic_row(const T* __restrict product, const T* __restrict x, const T* __restrict anchor,
                            const T* __restrict linear, T* __restrict gradient, std::int64_t n) {
  LaneSum value, square, change;
  const auto at = [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
    const auto origin = anchor != nullptr ? load_first<T>(anchor + i, count) : Vector<T>{};
    const auto half = load_first<T>(product + i, count), constant = load_first<T>(linear + i, count);
    const auto twice = half + half, slope = constant + twice;
    store_first<T>(gradient + i, slope, count);
    auto values = widened<T>(load_first<T>(x + i, count) - origin), squares = widened<T>(slope), changes = widened<T>(twice);
    const auto wide_half = widened<T>(half), wide_constant = widened<T>(constant);
    for (int part = 0; part < Wide<T>::parts; ++part) {
      values.part[part] *= wide_constant.part[part] + wide_half.part[part];
      squares.part[part] *= squares.part[part];
      changes.part[part] *= changes.part[part];
    }
    add_to<T>(value, values);
    add_to<T>(square, squares);
    add_to<T>(change, changes);
  };
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) at(i, lanes<T>);
  if (i < n) at(i, n - i);
  return {value.total(), square.total(), change.total()};
}

}  // namespace

template <typename T>
ToeplitzKernels<T> toeplitz_kernels() {
  return {multiply_panel<T>, quadratic_row<T>};
}

template ToeplitzKernels<float> toeplitz_kernels();
template ToeplitzKernels<double> toeplitz_kernels();

}  // namespace mpol::ops::MPOL_ISA
