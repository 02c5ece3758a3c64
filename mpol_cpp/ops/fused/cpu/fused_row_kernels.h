#pragma once

// Kernels of FusedKernels on image rows; for files that mpol_add_isa_sources compiles.
#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>
#include <mpol_cpp/ops/simd/math.h>
#include <mpol_cpp/ops/simd/wide.h>

namespace mpol::ops::MPOL_ISA {

/// [1/4, 1/2, 1/4] along a row at x.
template <typename T>
MPOL_INLINE Vector<T> hann_at(const T* x) {
  return T(0.5) * load<T>(x) + T(0.25) * (load<T>(x - 1) + load<T>(x + 1));
}

template <typename T>
MPOL_INLINE Vector<T> blend(Vector<T> below, Vector<T> centre, Vector<T> above) {
  return T(0.5) * centre + T(0.25) * (below + above);
}

template <typename T>
MPOL_INLINE Vector<T> keep_first(Vector<T> values, std::int64_t count) {
  return first_lanes<T>(count) ? values : Vector<T>{};
}

template <typename T>
void map_row(const T* __restrict base, T* __restrict mapped, T* __restrict smoothed, std::int64_t n) {
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    __builtin_prefetch(base + n + j);
    store<T>(mapped + j, softplus<T>(load<T>(base + j)));
  }
  if (j < n) store<T>(mapped + j, keep_first<T>(softplus<T>(load_part<T>(base + j, n - j)), n - j));
  for (j = 0; j < n; j += lanes<T>) store<T>(smoothed + j, hann_at<T>(mapped + j));
}

template <typename T>
void blend_rows(const T* __restrict below, const T* __restrict centre, const T* __restrict above, T* __restrict out,
                std::int64_t n) {
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    store<T>(out + j, blend<T>(load<T>(below + j), load<T>(centre + j), load<T>(above + j)));
  }
  if (j < n) store<T>(out + j, keep_first<T>(blend<T>(load<T>(below + j), load<T>(centre + j), load<T>(above + j)), n - j));
}

// ---- total variation and total squared variation

template <typename T>
struct DifferenceWeights {
  T tv, twice_tsv, epsilon;
};

template <typename T>
struct DifferenceSums {
  Vector<T> tv{}, tsv{};
};

template <typename T, bool tv>
MPOL_INLINE void differences_at(const T* row, const T* next, T* along, T* across, const DifferenceWeights<T>& weights,
                                DifferenceSums<T>& sums, IntegerVector<T> valid) {
  const Vector<T> centre = load<T>(row);
  const Vector<T> dl = valid ? load<T>(row + 1) - centre : Vector<T>{};
  const Vector<T> dm = valid ? load<T>(next) - centre : Vector<T>{};
  const Vector<T> squares = dl * dl + dm * dm;
  sums.tsv += squares;
  Vector<T> slope = broadcast<T>(weights.twice_tsv);
  if constexpr (tv) {
    const Vector<T> smoothed = squares + weights.epsilon;
    const Vector<T> inverse = reciprocal_square_root<T>(smoothed);
    sums.tv += valid ? smoothed * inverse : Vector<T>{};
    slope += weights.tv * inverse;
  }
  store<T>(along, dl * slope);
  store<T>(across, dm * slope);
}

template <typename T, bool tv>
MPOL_INLINE void differences_of(const T* __restrict row, const T* __restrict next, T* __restrict along, T* __restrict across,
                                std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  const DifferenceWeights<T> weights{static_cast<T>(terms.tv_image), static_cast<T>(2 * terms.tsv),
                                     static_cast<T>(terms.tv_image_epsilon)};
  DifferenceSums<T> row_sums;
  std::int64_t j = 0;
  for (; j + lanes<T> < n; j += lanes<T>) {
    __builtin_prefetch(next + (next - row) + j);
    differences_at<T, tv>(row + j, next + j, along + j, across + j, weights, row_sums, first_lanes<T>(lanes<T>));
  }
  differences_at<T, tv>(row + j, next + j, along + j, across + j, weights, row_sums, first_lanes<T>(n - 1 - j));
  if constexpr (tv) add_to<T>(sums.tv_image, row_sums.tv);
  add_to<T>(sums.tsv, row_sums.tsv);
}

template <typename T>
void differences(const T* row, const T* next, T* along, T* across, std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  if (terms.tv_image > 0) differences_of<T, true>(row, next, along, across, n, terms, sums);
  else differences_of<T, false>(row, next, along, across, n, terms, sums);
}

// ---- the gradient with respect to the image

template <typename T>
struct PixelWeights {
  T sparsity, entropy, inverse_prior, floor;
};

template <typename T>
struct PixelSums {
  Vector<T> sparsity{}, entropy{};
};

template <typename T, bool entropy>
MPOL_INLINE Vector<T> pixel_terms(Vector<T> x, const PixelWeights<T>& weights, PixelSums<T>& sums, IntegerVector<T> inside) {
  const Vector<T> zero{};
  sums.sparsity += magnitude<T>(x);
  Vector<T> slope = x > zero ? broadcast<T>(weights.sparsity) : (x < zero ? broadcast<T>(-weights.sparsity) : zero);
  if constexpr (entropy) {
    const Vector<T> floored = x < weights.floor ? broadcast<T>(weights.floor) : x;
    const Vector<T> information = logarithm<T>(floored * weights.inverse_prior);
    sums.entropy += inside ? x * information : zero;
    slope += weights.entropy * (information + T(1));
  }
  return slope;
}

template <typename T, bool smooth, bool entropy>
MPOL_INLINE void image_gradient_of(const T* __restrict row, const T* __restrict likelihood, const T* __restrict along,
                                   const T* __restrict across, const T* __restrict across_below, T* __restrict gradient,
                                   std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  const PixelWeights<T> weights{static_cast<T>(terms.sparsity), static_cast<T>(terms.entropy / terms.total_flux),
                                static_cast<T>(1 / terms.prior_intensity), static_cast<T>(terms.entropy_floor)};
  PixelSums<T> row_sums;
  const auto at = [&](std::int64_t j, IntegerVector<T> inside) __attribute__((always_inline)) {
    Vector<T> slope = load<T>(likelihood + j) + pixel_terms<T, entropy>(load<T>(row + j), weights, row_sums, inside);
    if constexpr (smooth) {
      slope += (load<T>(along + j - 1) - load<T>(along + j)) + (load<T>(across_below + j) - load<T>(across + j));
    }
    return slope;
  };
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) store<T>(gradient + j, at(j, first_lanes<T>(lanes<T>)));
  if (j < n) store<T>(gradient + j, keep_first<T>(at(j, first_lanes<T>(n - j)), n - j));
  add_to<T>(sums.sparsity, row_sums.sparsity);
  if constexpr (entropy) add_to<T>(sums.entropy, row_sums.entropy);
}

template <typename T>
void image_gradient(const T* row, const T* likelihood, const T* along, const T* across, const T* across_below, T* gradient,
                    std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  const auto kernel = along != nullptr
                          ? (terms.entropy > 0 ? image_gradient_of<T, true, true> : image_gradient_of<T, true, false>)
                          : (terms.entropy > 0 ? image_gradient_of<T, false, true> : image_gradient_of<T, false, false>);
  kernel(row, likelihood, along, across, across_below, gradient, n, terms, sums);
}

// ---- total variation between channels

template <typename T, bool first, bool last>
MPOL_INLINE void channel_gradient_of(const T* __restrict row, const T* __restrict before, const T* __restrict after,
                                     T* __restrict gradient, std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  const T weight = static_cast<T>(terms.tv_channel), epsilon = static_cast<T>(terms.tv_channel_epsilon);
  Vector<T> row_sum{};
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    const auto inside = first_lanes<T>(n - j);
    Vector<T> slope{};
    if constexpr (!first) {
      const Vector<T> step = load<T>(row + j) - load<T>(before + j);
      slope += step * reciprocal_square_root<T>(step * step + epsilon);
    }
    if constexpr (!last) {
      const Vector<T> step = load<T>(after + j) - load<T>(row + j), smoothed = step * step + epsilon;
      const Vector<T> inverse = reciprocal_square_root<T>(smoothed);
      slope -= step * inverse;
      row_sum += inside ? smoothed * inverse : Vector<T>{};
    }
    store<T>(gradient + j, load<T>(gradient + j) + (inside ? weight * slope : Vector<T>{}));
  }
  add_to<T>(sums.tv_channel, row_sum);
}

template <typename T>
void channel_gradient(const T* row, const T* before, const T* after, T* gradient, std::int64_t n, const FusedTerms& terms,
                      RowSums& sums) {
  if (before != nullptr && after != nullptr) channel_gradient_of<T, false, false>(row, before, after, gradient, n, terms, sums);
  else if (before != nullptr) channel_gradient_of<T, false, true>(row, before, after, gradient, n, terms, sums);
  else if (after != nullptr) channel_gradient_of<T, true, false>(row, before, after, gradient, n, terms, sums);
}

}  // namespace mpol::ops::MPOL_ISA
