// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <mpol_cpp/ops/fft/fft_butterflies.h>
#include <mpol_cpp/ops/fft/fft_transposition.h>

namespace mpol::ops::MPOL_ISA {
namespace {

/// By convolution with the conjugate chirp. Parts are swapped on the way in and out for the inverse transform.
template <bool inverse, typename T>
void transform_by_convolution(const FftPlan<T>& plan, T* panel, T* scratch) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  const auto& convolution = *plan.convolution;
  const auto in_order = [](Complex<T> value) __attribute__((always_inline)) {
    return inverse ? Complex<T>{value.im, value.re} : value;
  };
  for (std::int64_t j = 0; j < plan.length; ++j) {
    for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
      const auto value = in_order(load_complex<T>(panel + j * row + lane));
      store_complex<T>(scratch + j * row + lane, turned<true>(value, plan.chirp[2 * j], plan.chirp[2 * j + 1]));
    }
  }
  std::memset(scratch + plan.length * row, 0, static_cast<std::size_t>((convolution.length - plan.length) * row) * sizeof(T));
  run_stages<false>(convolution, 0, scratch, 1);
  for (std::int64_t j = 0; j < convolution.length; ++j) {
    for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
      T* value = scratch + j * row + lane;
      store_complex<T>(value, turned<true>(load_complex<T>(value), plan.filter[2 * j], plan.filter[2 * j + 1]));
    }
  }
  run_stages<true>(convolution, 0, scratch, 1);
  for (std::int64_t j = 0; j < plan.length; ++j) {
    for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
      const auto value = turned<true>(load_complex<T>(scratch + j * row + lane), plan.chirp[2 * j], plan.chirp[2 * j + 1]);
      store_complex<T>(panel + j * row + lane, in_order(value));
    }
  }
}

template <bool inverse, typename T>
void transform_panel(const FftPlan<T>& plan, T* panel, T* scratch) {
  if (plan.convolution) transform_by_convolution<inverse>(plan, panel, scratch);
  else run_stages<inverse>(plan, 0, panel, 1);
}

/// Where each block of the longest stage begins: in a panel, or among the rows of a support.
template <typename T>
std::array<std::int64_t, 8> rows_of_blocks(const FftPlan<T>& plan) {
  std::array<std::int64_t, 8> rows{};
  for (int q = 0; q < plan.stages[0].radix; ++q) rows[static_cast<std::size_t>(q)] = q * plan.length / plan.stages[0].radix;
  return rows;
}
template <typename T>
std::array<std::int64_t, 8> rows_of_blocks(const FftPlan<T>& plan, const FftSupport& support) {
  auto rows = rows_of_blocks(plan);
  for (auto& row : rows) row += row < support.head ? support.tail : support.tail - plan.length;
  return rows;
}

template <typename T>
void forward_part(const FftPlan<T>& plan, const T* rows, const FftSupport& support, T* panel, T* scratch) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  if (const auto blocks = blocks_of(plan, support); blocks != 0) {
    const auto of_block = rows_of_blocks(plan, support);
    run_part<false>(plan.stages[0], blocks, const_cast<T*>(rows), of_block.data(), panel);
    return run_stages<false>(plan, 1, panel, plan.stages[0].radix);
  }
  const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count * row) * sizeof(T); };
  const auto tail = plan.length - support.tail;
  std::memcpy(panel, rows + support.tail * row, bytes(support.head));
  std::memset(panel + support.head * row, 0, bytes(tail - support.head));
  std::memcpy(panel + tail * row, rows, bytes(support.tail));
  transform_panel<false>(plan, panel, scratch);
}

template <typename T>
void inverse_part(const FftPlan<T>& plan, T* panel, T* rows, const FftSupport& support, T* scratch) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  if (const auto blocks = blocks_of(plan, support); blocks != 0) {
    const auto of_block = rows_of_blocks(plan, support);
    run_stages<true>(plan, 1, panel, plan.stages[0].radix);
    return run_part<true>(plan.stages[0], blocks, rows, of_block.data(), panel);
  }
  const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count * row) * sizeof(T); };
  transform_panel<true>(plan, panel, scratch);
  std::memcpy(rows + support.tail * row, panel, bytes(support.head));
  std::memcpy(rows, panel + (plan.length - support.tail) * row, bytes(support.tail));
}

/// Frequency k of the real lines from the transform Z of their even and odd elements: with E and O the transforms of those,
/// Z = E + i O, H_k = E_k + e^{-2 pi i k / length} O_k.
template <typename T>
MPOL_INLINE Complex<T> half_spectrum(const RealFftPlan<T>& plan, const T* panel, std::int64_t k) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  const auto n = plan.half.length;
  const auto slot = [&](std::int64_t i) { return plan.half.slots[static_cast<std::size_t>(i == n ? 0 : i)]; };
  const auto own = load_complex<T>(panel + slot(k) * row), mirrored = load_complex<T>(panel + slot(n - k) * row);
  const T c = plan.turns[2 * k], s = plan.turns[2 * k + 1];
  const auto re = own.re - mirrored.re, im = own.im + mirrored.im;
  return {T(0.5) * (own.re + mirrored.re) + (c * im - s * re), T(0.5) * (own.im - mirrored.im) - (c * re + s * im)};
}

/// The adjoint of half_spectrum: what Re(H_k e^{2 pi i k x / length}) asks for at k and at its mirror image, added to what is
/// there or, where `alone`, in its place.
template <bool alone, typename T>
MPOL_INLINE void put_half_spectrum(const RealFftPlan<T>& plan, T* panel, std::int64_t k, const Complex<T>& value) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  const auto n = plan.half.length;
  const auto slot = [&](std::int64_t i) { return plan.half.slots[static_cast<std::size_t>(i == n ? 0 : i)]; };
  const T c = plan.turns[2 * k], s = plan.turns[2 * k + 1];
  const Complex<T> conjugate{value.re, -value.im};
  T* own = panel + slot(k) * row;
  T* mirrored = panel + slot(n - k) * row;
  auto at_own = turned<true>(value, T(0.5) - s, c);
  if (!alone || k == 0) at_own = at_own + load_complex<T>(own);
  store_complex<T>(own, at_own);
  auto at_mirrored = turned<true>(conjugate, T(0.5) + s, c);
  if (!alone || k == 0) at_mirrored = at_mirrored + load_complex<T>(mirrored);
  store_complex<T>(mirrored, at_mirrored);
}

/// True when no two of the columns, mirrored or not, share a row of the panel but column 0 with itself.
template <typename T>
bool columns_are_alone(const FftPanels<T>& panels, std::int64_t n) {
  return panels.count > 0 && 2 * panels.columns[panels.count - 1] < n;
}

/// Clears the rows that put_half_spectra() will not overwrite.
template <typename T>
void clear_half_spectra(const RealFftPlan<T>& plan, const FftPanels<T>& panels, T* panel) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  const auto n = plan.half.length;
  const auto clear = [&](std::int64_t k) {
    std::memset(panel + plan.half.slots[static_cast<std::size_t>(k)] * row, 0, static_cast<std::size_t>(row) * sizeof(T));
  };
  if (!columns_are_alone(panels, n)) {
    std::memset(panel, 0, static_cast<std::size_t>(n * row) * sizeof(T));
    return;
  }
  clear(0);
  std::int64_t next = 1;  // that is not cleared or left to a column
  for (std::int64_t i = 0; i < panels.count; ++i) {
    for (const auto column = panels.columns[i]; next < column; ++next) clear(next), clear(n - next);
    next = std::max<std::int64_t>(next, panels.columns[i] + 1);
  }
  for (; next <= n - panels.columns[panels.count - 1] - 1; ++next) clear(next);
}

template <bool alone, typename T>
void put_half_spectra(const RealFftPlan<T>& plan, const FftPanels<T>& panels, std::int64_t count, T* panel) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  for (std::int64_t column = 0; column < panels.count; column += fft_batch<T>) {
    const T* from = panels.first + column / fft_batch<T> * panels.distance;
    for (std::int64_t part = 0; part < fft_batch<T> && column + part < panels.count; part += lanes<T>) {
      const auto* columns = panels.columns + column + part;
      const auto kept = panels.count - column - part;
      for (std::int64_t lane = 0; lane < fft_batch<T> && lane < count; lane += lanes<T>) {
        Block<T> block;
#pragma GCC unroll 16
        for (int i = 0; i < lanes<T>; ++i) {
          const auto value = lane + i < count ? load_complex<T>(from + (lane + i) * row + part) : Complex<T>{};
          block.re[i] = value.re;
          block.im[i] = value.im;
        }
        transpose<T>(block.re);
        transpose<T>(block.im);
#pragma GCC unroll 16
        for (int i = 0; i < lanes<T>; ++i) {
          if (i < kept) put_half_spectrum<alone, T>(plan, panel + lane, columns[i], {block.re[i], block.im[i]});
        }
      }
    }
  }
}

template <typename T>
void forward_rows(const RealFftPlan<T>& plan, const T* lines, std::int64_t distance, std::int64_t count,
                  const FftSupport& support, const FftPanels<T>& panels, T* scratch) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  const auto n = plan.half.length;
  T* panel = scratch + plan.half.scratch_size();
  const auto blocks = support.head % 2 == 0 ? blocks_of(plan.half, {support.head / 2, support.tail / 2}) : 0;
  if (blocks == 0 && support.head + support.tail < 2 * n) std::memset(panel, 0, static_cast<std::size_t>(n * row) * sizeof(T));
  for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
    pack_lines<T>(lines + lane * distance, distance, count - lane, 0, support.head, panel + lane);
    pack_lines<T>(lines + lane * distance, distance, count - lane, 2 * n - support.tail, 2 * n, panel + lane);
  }
  if (blocks != 0) {
    run_part<false>(plan.half.stages[0], blocks, panel, rows_of_blocks(plan.half).data(), panel);
    run_stages<false>(plan.half, 1, panel, plan.half.stages[0].radix);
  } else {
    transform_panel<false>(plan.half, panel, scratch);
  }
  for (std::int64_t column = 0; column < panels.count; column += fft_batch<T>) {
    T* to = panels.first + column / fft_batch<T> * panels.distance;
    for (std::int64_t part = 0; part < fft_batch<T>; part += lanes<T>) {
      const auto kept = panels.count - column - part;
      for (std::int64_t lane = 0; lane < fft_batch<T> && lane < count; lane += lanes<T>) {
        Block<T> block;
#pragma GCC unroll 16
        for (int i = 0; i < lanes<T>; ++i) {
          const auto value = i < kept ? half_spectrum<T>(plan, panel + lane, panels.columns[column + part + i]) : Complex<T>{};
          block.re[i] = value.re;
          block.im[i] = value.im;
        }
        transpose<T>(block.re);
        transpose<T>(block.im);
        for (int i = 0; i < lanes<T> && lane + i < count; ++i) {
          store_complex<T>(to + (lane + i) * row + part, {block.re[i], block.im[i]});
        }
      }
    }
  }
}

template <typename T>
void adjoint_rows(const RealFftPlan<T>& plan, const FftPanels<T>& panels, T* lines, std::int64_t distance, std::int64_t count,
                  const FftSupport& support, T* scratch) {
  const auto n = plan.half.length;
  T* panel = scratch + plan.half.scratch_size();
  clear_half_spectra(plan, panels, panel);
  if (columns_are_alone(panels, n)) put_half_spectra<true>(plan, panels, count, panel);
  else put_half_spectra<false>(plan, panels, count, panel);
  const auto blocks = support.head % 2 == 0 ? blocks_of(plan.half, {support.head / 2, support.tail / 2}) : 0;
  if (blocks != 0) {
    run_stages<true>(plan.half, 1, panel, plan.half.stages[0].radix);
    run_part<true>(plan.half.stages[0], blocks, panel, rows_of_blocks(plan.half).data(), panel);
  } else {
    transform_panel<true>(plan.half, panel, scratch);
  }
  for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
    unpack_lines<T>(panel + lane, 0, support.head, lines + lane * distance, distance, count - lane);
    unpack_lines<T>(panel + lane, 2 * n - support.tail, 2 * n, lines + lane * distance, distance, count - lane);
  }
}

template <typename T>
void panel_to_columns(const T* panel, const std::int32_t* rows, std::int64_t count, T* columns, std::int64_t distance,
                      std::int64_t kept) {
  for (std::int64_t lane = 0; lane < kept; lane += lanes<T>) {
    for (std::int64_t i = 0; i < count; i += lanes<T>) {
      const auto block = load_rows<T>(panel + lane, rows + i, count - i);
      for (int j = 0; j < lanes<T> && lane + j < kept; ++j) {
        T* to = columns + (lane + j) * distance + 2 * i;
        store_first<T>(to, interleave<T, 0>(block.re[j], block.im[j]), 2 * (count - i));
        store_first<T>(to + lanes<T>, interleave<T, 1>(block.re[j], block.im[j]), 2 * (count - i) - lanes<T>);
      }
    }
  }
}

template <typename T>
void columns_to_panel(const T* columns, std::int64_t distance, std::int64_t kept, const std::int32_t* rows, std::int64_t count,
                      T* panel) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
    for (std::int64_t i = 0; i < count; i += lanes<T>) {
      Block<T> block;
      for (int j = 0; j < lanes<T>; ++j) {
        const T* from = columns + (lane + j) * distance + 2 * i;
        const bool there = lane + j < kept;
        const auto lower = load_first<T>(from, there ? 2 * (count - i) : 0);
        const auto upper = load_first<T>(from + lanes<T>, there ? 2 * (count - i) - lanes<T> : 0);
        block.re[j] = every_other<T, 0>(lower, upper);
        block.im[j] = every_other<T, 1>(lower, upper);
      }
      transpose<T>(block.re);
      transpose<T>(block.im);
      for (int j = 0; j < lanes<T> && i + j < count; ++j) {
        store_complex<T>(panel + rows[i + j] * row + lane, {block.re[j], block.im[j]});
      }
    }
  }
}

}  // namespace

template <typename T>
FftKernels<T> fft_kernels() {
  // The numbers of a transform of eight do not fit sixteen registers.
  return {vector_bytes == 64 ? 8 : 4,
          transform_panel<false, T>,
          transform_panel<true, T>,
          forward_part<T>,
          inverse_part<T>,
          forward_rows<T>,
          adjoint_rows<T>,
          panel_to_columns<T>,
          columns_to_panel<T>};
}

template FftKernels<float> fft_kernels();
template FftKernels<double> fft_kernels();

}  // namespace mpol::ops::MPOL_ISA
