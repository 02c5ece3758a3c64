#pragma once

// Part of fft_kernels_isa.cpp, which is compiled once per instruction set: everything here is in an unnamed namespace.
#include <mpol_cpp/ops/fft/fft_kernels.h>
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {
namespace {

/// A complex number in each lane.
template <typename T>
struct Complex {
  Vector<T> re, im;
};

template <typename T>
MPOL_INLINE Complex<T> operator+(const Complex<T>& a, const Complex<T>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename T>
MPOL_INLINE Complex<T> operator-(const Complex<T>& a, const Complex<T>& b) {
  return {a.re - b.re, a.im - b.im};
}
/// a (c - i s), or a (c + i s) where `conjugate`.
template <bool conjugate, typename T>
MPOL_INLINE Complex<T> turned(const Complex<T>& a, T c, T s) {
  if constexpr (conjugate) return {a.re * c - a.im * s, a.im * c + a.re * s};
  else return {a.re * c + a.im * s, a.im * c - a.re * s};
}
/// -i a, or i a in an inverse transform.
template <bool inverse, typename T>
MPOL_INLINE Complex<T> quarter_turned(const Complex<T>& a) {
  if constexpr (inverse) return {-a.im, a.re};
  else return {a.im, -a.re};
}

template <typename T>
MPOL_INLINE Complex<T> load_complex(const T* row) {
  return {load<T>(row), load<T>(row + fft_batch<T>)};
}
template <typename T>
MPOL_INLINE void store_complex(T* row, const Complex<T>& value) {
  store<T>(row, value.re);
  store<T>(row + fft_batch<T>, value.im);
}

template <bool inverse, typename T>
MPOL_INLINE void transform_4(Complex<T>& x0, Complex<T>& x1, Complex<T>& x2, Complex<T>& x3) {
  const auto even_sum = x0 + x2, even_difference = x0 - x2, odd_sum = x1 + x3;
  const auto odd_difference = quarter_turned<inverse>(x1 - x3);
  x0 = even_sum + odd_sum;
  x1 = even_difference + odd_difference;
  x2 = even_sum - odd_sum;
  x3 = even_difference - odd_difference;
}

/// The transform of `radix` numbers in place. Odd radices pair the numbers q and radix - q, whose sums meet cosines and
/// whose differences meet sines.
template <int radix, bool inverse, typename T>
MPOL_INLINE void transform(Complex<T> (&x)[radix], const T* roots) {
  if constexpr (radix == 2) {
    const auto difference = x[0] - x[1];
    x[0] = x[0] + x[1];
    x[1] = difference;
  } else if constexpr (radix == 4) {
    transform_4<inverse>(x[0], x[1], x[2], x[3]);
  } else if constexpr (radix == 8) {
    constexpr T diagonal = T(0.70710678118654752440);
    transform_4<inverse>(x[0], x[2], x[4], x[6]);
    transform_4<inverse>(x[1], x[3], x[5], x[7]);
    const Complex<T> even[4] = {x[0], x[2], x[4], x[6]};
    const Complex<T> odd[4] = {x[1], turned<inverse>(x[3], diagonal, diagonal), quarter_turned<inverse>(x[5]),
                               turned<inverse>(x[7], -diagonal, diagonal)};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      x[k] = even[k] + odd[k];
      x[k + 4] = even[k] - odd[k];
    }
  } else {
    constexpr int pairs = (radix - 1) / 2;
    Complex<T> sum[pairs], difference[pairs];
    const auto first = x[0];
#pragma GCC unroll 8
    for (int q = 0; q < pairs; ++q) {
      sum[q] = x[q + 1] + x[radix - 1 - q];
      difference[q] = quarter_turned<inverse>(x[q + 1] - x[radix - 1 - q]);
      x[0] = x[0] + sum[q];
    }
#pragma GCC unroll 8
    for (int k = 1; k <= pairs; ++k) {
      auto even = first;
      Complex<T> odd{};
#pragma GCC unroll 8
      for (int q = 0; q < pairs; ++q) {
        const T* root = roots + 2 * (k * (q + 1) % radix);
        even = {even.re + sum[q].re * root[0], even.im + sum[q].im * root[0]};
        odd = {odd.re + difference[q].re * root[1], odd.im + difference[q].im * root[1]};
      }
      x[k] = even + odd;
      x[radix - k] = even - odd;
    }
  }
}

/// Numbers j, j + stride, ... of a block. Forward: transformed, then turned; inverse: turned back, then transformed.
template <int radix, bool inverse, bool twiddled, typename T>
MPOL_INLINE void butterfly(T* first, std::int64_t stride, const T* twiddles, const T* roots) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
    Complex<T> x[radix];
#pragma GCC unroll 16
    for (int q = 0; q < radix; ++q) {
      x[q] = load_complex<T>(first + lane + q * stride * row);
      if constexpr (inverse && twiddled) {
        if (q > 0) x[q] = turned<true>(x[q], twiddles[2 * q - 2], twiddles[2 * q - 1]);
      }
    }
    transform<radix, inverse>(x, roots);
#pragma GCC unroll 16
    for (int q = 0; q < radix; ++q) {
      if constexpr (!inverse && twiddled) {
        if (q > 0) x[q] = turned<false>(x[q], twiddles[2 * q - 2], twiddles[2 * q - 1]);
      }
      store_complex<T>(first + lane + q * stride * row, x[q]);
    }
  }
}

template <int radix, bool inverse, typename T>
void run_stage(const FftStage<T>& stage, T* panel, std::int64_t blocks) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  const auto stride = stage.length / radix;
  for (std::int64_t block = 0; block < blocks; ++block) {
    T* first = panel + block * stage.length * row;
    const T* twiddles = stage.twiddles.data();
    butterfly<radix, inverse, false>(first, stride, twiddles, stage.roots.data());
    for (std::int64_t j = 1; j < stride; ++j, twiddles += 2 * (radix - 1)) {
      butterfly<radix, inverse, true>(first + j * row, stride, twiddles, stage.roots.data());
    }
  }
}

template <bool inverse, typename T>
void run_stage(const FftStage<T>& stage, T* panel, std::int64_t blocks) {
  switch (stage.radix) {
    case 2:
      return run_stage<2, inverse>(stage, panel, blocks);
    case 3:
      return run_stage<3, inverse>(stage, panel, blocks);
    case 4:
      return run_stage<4, inverse>(stage, panel, blocks);
    case 5:
      return run_stage<5, inverse>(stage, panel, blocks);
    case 7:
      return run_stage<7, inverse>(stage, panel, blocks);
    case 8:
      return run_stage<8, inverse>(stage, panel, blocks);
    case 11:
      return run_stage<11, inverse>(stage, panel, blocks);
    default:
      return run_stage<13, inverse>(stage, panel, blocks);
  }
}

/// Stages from `first` on of `blocks` blocks. Blocks that do not fit the first-level cache are worked off one by one, each to
/// its end: forward from the longest stage to the shortest, inverse the other way round.
template <bool inverse, typename T>
void run_stages(const FftPlan<T>& plan, std::size_t first, T* panel, std::int64_t blocks) {
  constexpr std::int64_t row = 2 * fft_batch<T>, cached = 32768 / static_cast<std::int64_t>(row * sizeof(T));
  const auto count = plan.stages.size();
  if (first == count) return;
  const auto& stage = plan.stages[first];
  if (blocks * stage.length <= cached) {
    for (std::size_t i = first; i < count; ++i) {
      const auto& own = plan.stages[inverse ? first + count - 1 - i : i];
      run_stage<inverse>(own, panel, blocks * stage.length / own.length);
    }
    return;
  }
  for (std::int64_t block = 0; block < blocks; ++block) {
    T* own = panel + block * stage.length * row;
    if (!inverse) run_stage<inverse>(stage, own, 1);
    run_stages<inverse>(plan, first + 1, own, stage.radix);
    if (inverse) run_stage<inverse>(stage, own, 1);
  }
}

// ---- the longest stage where whole blocks of the line are 0 or are not asked for

/// Which blocks of the longest stage the support of a line is, one bit each; 0 where it is not whole halves or quarters.
template <typename T>
unsigned blocks_of(const FftPlan<T>& plan, const FftSupport& support) {
  if (plan.convolution || plan.stages.empty() || plan.stages[0].radix % 4 != 0) return 0;
  const auto radix = static_cast<unsigned>(plan.stages[0].radix);
  if (2 * support.head == plan.length && support.tail == 0) return (1U << radix / 2) - 1;
  const unsigned quarter = (1U << radix / 4) - 1;
  if (4 * support.head == plan.length && support.tail == support.head) return quarter | quarter << (radix - radix / 4);
  return 0;
}

/// Forward: from the blocks to the panel; inverse: from the panel to the blocks. Row `of_block[q]` of `part` is the first of
/// block q.
template <int radix, bool inverse, unsigned blocks, typename T>
void run_part(const FftStage<T>& stage, T* part, const std::int64_t* of_block, T* panel) {
  constexpr std::int64_t row = 2 * fft_batch<T>;
  const auto stride = stage.length / radix;
  const T* twiddles = stage.twiddles.data();
  for (std::int64_t j = 0; j < stride; ++j) {
    for (std::int64_t lane = 0; lane < fft_batch<T>; lane += lanes<T>) {
      Complex<T> x[radix];
#pragma GCC unroll 16
      for (int q = 0; q < radix; ++q) {
        if constexpr (inverse) {
          x[q] = load_complex<T>(panel + lane + (q * stride + j) * row);
          if (q > 0 && j > 0) x[q] = turned<true>(x[q], twiddles[2 * q - 2], twiddles[2 * q - 1]);
        } else {
          x[q] = (blocks >> q & 1U) != 0 ? load_complex<T>(part + lane + (of_block[q] + j) * row) : Complex<T>{};
        }
      }
      transform<radix, inverse>(x, stage.roots.data());
#pragma GCC unroll 16
      for (int q = 0; q < radix; ++q) {
        if constexpr (inverse) {
          if ((blocks >> q & 1U) != 0) store_complex<T>(part + lane + (of_block[q] + j) * row, x[q]);
        } else {
          if (q > 0 && j > 0) x[q] = turned<false>(x[q], twiddles[2 * q - 2], twiddles[2 * q - 1]);
          store_complex<T>(panel + lane + (q * stride + j) * row, x[q]);
        }
      }
    }
    if (j > 0) twiddles += 2 * (radix - 1);
  }
}

template <bool inverse, typename T>
void run_part(const FftStage<T>& stage, unsigned blocks, T* part, const std::int64_t* of_block, T* panel) {
  switch (blocks) {
    case 0x3:
      return run_part<4, inverse, 0x3>(stage, part, of_block, panel);
    case 0x9:
      return run_part<4, inverse, 0x9>(stage, part, of_block, panel);
    case 0xf:
      return run_part<8, inverse, 0xf>(stage, part, of_block, panel);
    default:
      return run_part<8, inverse, 0xc3>(stage, part, of_block, panel);
  }
}

}  // namespace
}  // namespace mpol::ops::MPOL_ISA
