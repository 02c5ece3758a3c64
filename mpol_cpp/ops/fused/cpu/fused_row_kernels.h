#pragma once

// Kernels of FusedKernels on image rows; for files that mpol_add_isa_sources compiles.
#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>
#include <mpol_cpp/ops/simd/hann_row.h>
#include <mpol_cpp/ops/simd/math.h>
#include <mpol_cpp/ops/simd/second_differences.h>
#include <mpol_cpp/ops/simd/wide.h>
#include <mpol_cpp/regularizers/formulas.h>

namespace mpol::ops::MPOL_ISA {

/// [1/4, 1/2, 1/4] along a row at x.
template <typename T>
MPOL_INLINE Vector<T> hann_at(const T* x) {
  return hann_blend<T>(load<T>(x - 1), load<T>(x), load<T>(x + 1));
}

template <typename T>
MPOL_INLINE Vector<T> keep_first(Vector<T> values, std::int64_t count) {
  return first_lanes<T>(count) ? values : Vector<T>{};
}

template <typename T>
void map_row(const T* __restrict base, T* __restrict mapped, T* __restrict smoothed, std::int64_t n) {
  // Short loops instead of a long one: the processor then has more vectors under way at once.
  each_vector<T>(
      n, [&](std::int64_t j, std::int64_t valid) __attribute__((always_inline)) {
        __builtin_prefetch(base + n + j);
        const Vector<T> x = load_first<T>(base + j, valid);
        store<T>(smoothed + j, exp_of_negative<T>(negative_magnitude<T>(x)));
      });
  each_vector<T>(
      n, [&](std::int64_t j, std::int64_t valid) __attribute__((always_inline)) {
        const Vector<T> value = softplus_of<T>(load_first<T>(base + j, valid), load<T>(smoothed + j));
        store<T>(mapped + j, valid < lanes<T> ? keep_first<T>(value, valid) : value);
      });
  for (std::int64_t j = 0; j < n; j += lanes<T>) store<T>(smoothed + j, hann_at<T>(mapped + j));
}

template <typename T>
void blend_rows(const T* __restrict below, const T* __restrict center, const T* __restrict above, T* __restrict out,
                std::int64_t n) {
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    store<T>(out + j, hann_blend<T>(load<T>(below + j), load<T>(center + j), load<T>(above + j)));
  }
  if (j < n) store<T>(out + j, keep_first<T>(hann_blend<T>(load<T>(below + j), load<T>(center + j), load<T>(above + j)), n - j));
}

// ---- regularizers

using regularizers::Cost;
using regularizers::Driver;
using regularizers::Formulas;
using regularizers::Kinds;
using regularizers::KindsInUse;
using regularizers::KindsOf;
using regularizers::KindsOfCost;

/// The values of some regularizers over a row.
template <typename T, typename Some>
struct VectorSums;
template <typename T>
struct VectorSums<T, Kinds<>> {
  MPOL_INLINE void put(RowSums&) const {}
};
template <typename T, TermKind kind, TermKind... others>
struct VectorSums<T, Kinds<kind, others...>> {
  Vector<T> own{};
  VectorSums<T, Kinds<others...>> rest;

  template <TermKind which>
  MPOL_INLINE void add(Vector<T> values) {
    if constexpr (which == kind) own += values;
    else rest.template add<which>(values);
  }
  MPOL_INLINE void put(RowSums& sums) const {
    add_to<T>(sums.terms[static_cast<int>(kind)], own);
    rest.put(sums);
  }
};

/// Formulas of a row and the sums of their values, of which lanes that are not `inside` are left out.
template <typename T, typename Some>
struct RowFormulas {
  Formulas<T, Some> formulas;
  VectorSums<T, Some> sums;

  MPOL_INLINE explicit RowFormulas(const FusedTerms& terms) : formulas(terms) {}

  template <typename... Inputs>
  MPOL_INLINE Vector<T> slope(IntegerVector<T> inside, const Inputs&... inputs) {
    const auto add = [&](auto kind, Vector<T> values) __attribute__((always_inline)) {
      sums.template add<decltype(kind)::value>(inside ? values : Vector<T>{});
    };
    return formulas.template slope<VectorMath<T>>(add, inputs...);
  }
};

/// One bit for each of some regularizers, set where it has a weight.
template <TermKind... kinds>
MPOL_INLINE unsigned bits_in_use(Kinds<kinds...>, const FusedTerms& terms) {
  unsigned bits = 0, bit = 1;
  ((bits |= terms.weight(kinds) > 0 ? bit : 0, bit *= 2), ...);
  return bits;
}

/// Calls run with `bits` as a constant below 2^count.
template <int count, unsigned candidate = 0, typename Run>
MPOL_INLINE void with_bits(unsigned bits, const Run& run) {
  if constexpr (candidate + 1 < (1U << count)) {
    if (bits != candidate) return with_bits<count, candidate + 1>(bits, run);
  }
  run(std::integral_constant<unsigned, candidate>{});
}

/// Calls run with a constant whose KindsInUse are those that a driver has to work out.
template <Driver driver, typename Run>
MPOL_INLINE void with_kinds(const FusedTerms& terms, const Run& run) {
  using Large = KindsOfCost<Cost::large, KindsOf<driver>>;
  with_bits<Large::count>(bits_in_use(Large{}, terms), run);
}

template <typename T, typename Row>
MPOL_INLINE void differences_at(const T* row, const T* next, T* along, T* across, Row& formulas, IntegerVector<T> valid) {
  const Vector<T> center = load<T>(row);
  const Vector<T> dl = valid ? load<T>(row + 1) - center : Vector<T>{};
  const Vector<T> dm = valid ? load<T>(next) - center : Vector<T>{};
  const Vector<T> squares = dl * dl + dm * dm;
  const Vector<T> slope = formulas.slope(valid, squares);
  store<T>(along, dl * slope);
  store<T>(across, dm * slope);
}

template <typename T, typename Some>
MPOL_INLINE void differences_of(const T* __restrict row, const T* __restrict next, T* __restrict along, T* __restrict across,
                                std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  RowFormulas<T, Some> formulas(terms);
  std::int64_t j = 0;
  for (; j + lanes<T> < n; j += lanes<T>) {
    __builtin_prefetch(next + (next - row) + j);
    differences_at<T>(row + j, next + j, along + j, across + j, formulas, first_lanes<T>(lanes<T>));
  }
  differences_at<T>(row + j, next + j, along + j, across + j, formulas, first_lanes<T>(n - 1 - j));
  formulas.sums.put(sums);
}

template <typename T>
void differences(const T* row, const T* next, T* along, T* across, std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  with_kinds<Driver::differences>(
      terms, [&](auto bits) __attribute__((always_inline)) {
        differences_of<T, KindsInUse<Driver::differences, decltype(bits)::value>>(row, next, along, across, n, terms, sums);
      });
}

template <typename T, bool smooth, typename Some>
MPOL_INLINE void image_gradient_of(const T* __restrict row, const T* __restrict likelihood, const T* __restrict along,
                                   const T* __restrict across, const T* __restrict across_below, T* __restrict gradient,
                                   std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  RowFormulas<T, Some> formulas(terms);
  const auto at = [&](std::int64_t j, IntegerVector<T> inside) __attribute__((always_inline)) {
    Vector<T> slope = load<T>(likelihood + j) + formulas.slope(inside, load<T>(row + j));
    if constexpr (smooth) {
      slope += (load<T>(along + j - 1) - load<T>(along + j)) + (load<T>(across_below + j) - load<T>(across + j));
    }
    return slope;
  };
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) store<T>(gradient + j, at(j, first_lanes<T>(lanes<T>)));
  if (j < n) store<T>(gradient + j, keep_first<T>(at(j, first_lanes<T>(n - j)), n - j));
  formulas.sums.put(sums);
}

template <typename T>
void image_gradient(const T* row, const T* likelihood, const T* along, const T* across, const T* across_below, T* gradient,
                    std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  with_kinds<Driver::pixels>(
      terms, [&](auto bits) __attribute__((always_inline)) {
        using Some = KindsInUse<Driver::pixels, decltype(bits)::value>;
        const auto kernel = along != nullptr ? image_gradient_of<T, true, Some> : image_gradient_of<T, false, Some>;
        kernel(row, likelihood, along, across, across_below, gradient, n, terms, sums);
      });
}

template <typename T>
void curvatures(const T* __restrict below, const T* __restrict row, const T* __restrict above, const CurvatureRow<T>& slopes,
                std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  RowFormulas<T, KindsOf<Driver::curvatures>> formulas(terms);
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    const auto counted = first_lanes<T>(n - 1 - j) & ~first_lanes<T>(1 - j);
    const auto bends = second_differences<T>(below + j, row + j, above + j);
    const Vector<T> squares = bends.rows * bends.rows + bends.columns * bends.columns + bends.mixed * bends.mixed;
    const Vector<T> slope = counted ? formulas.slope(counted, squares) : Vector<T>{};
    store<T>(slopes.rows + j, slope * bends.rows);
    store<T>(slopes.columns + j, slope * bends.columns);
    store<T>(slopes.mixed + j, slope * bends.mixed);
  }
  formulas.sums.put(sums);
}

template <typename T>
void curvature_gradient(const CurvatureRow<const T>& below, const CurvatureRow<const T>& slopes,
                        const CurvatureRow<const T>& above, T* __restrict gradient, std::int64_t n) {
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    store<T>(gradient + j, load<T>(gradient + j) + adjoint_second_differences<T>(below, slopes, above, j));
  }
}

/// A vector of pixels in all channels. Whether it is the first or last channel is known to the compiler.
template <typename T, bool first, bool last>
struct RowSpectrum {
  const T* pixels;
  const ChannelRows<T>& rows;

  MPOL_INLINE bool has(int offset) const {
    if (offset == -1) return !first;
    if (offset == 1) return !last;
    return rows.channel + offset >= 0 && rows.channel + offset < rows.nchan;
  }
  MPOL_INLINE Vector<T> at(int offset) const { return load<T>(pixels + offset * rows.distance); }
};

template <typename T, TermKind kind, bool first, bool last>
MPOL_INLINE void channel_gradient_of(const ChannelRows<T>& rows, T* __restrict gradient, std::int64_t n, const FusedTerms& terms,
                                     RowSums& sums) {
  RowFormulas<T, Kinds<kind>> formulas(terms);
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    const auto inside = first_lanes<T>(n - j);
    const Vector<T> slope = formulas.slope(inside, RowSpectrum<T, first, last>{rows.row + j, rows});
    store<T>(gradient + j, load<T>(gradient + j) + (inside ? slope : Vector<T>{}));
  }
  formulas.sums.put(sums);
}

template <typename T>
void channel_gradient(const ChannelRows<T>& rows, T* gradient, std::int64_t n, const FusedTerms& terms, RowSums& sums) {
  if (rows.nchan == 1) return;
  const bool first = rows.channel == 0, last = rows.channel + 1 == rows.nchan;
  regularizers::for_each(
      KindsOf<Driver::channels>{}, [&](auto constant) __attribute__((always_inline)) {
        constexpr auto kind = decltype(constant)::value;
        if (!(terms.weight(kind) > 0)) return;
        if (first) channel_gradient_of<T, kind, true, false>(rows, gradient, n, terms, sums);
        else if (last) channel_gradient_of<T, kind, false, true>(rows, gradient, n, terms, sums);
        else channel_gradient_of<T, kind, false, false>(rows, gradient, n, terms, sums);
      });
}

template <typename T>
void spectrum_squares(const ChannelRows<T>& rows, T* __restrict squares, std::int64_t n) {
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    Vector<T> sum{};
    for (std::int64_t channel = 0; channel < rows.nchan; ++channel) {
      const auto x = load<T>(rows.row + (channel - rows.channel) * rows.distance + j);
      sum += x * x;
    }
    store<T>(squares + j, sum);
  }
}

template <typename T>
void spectrum_gradient(const ChannelRows<T>& rows, const T* __restrict squares, T* __restrict gradient, std::int64_t n,
                       const FusedTerms& terms, RowSums& sums) {
  regularizers::for_each(
      KindsOf<Driver::spectra>{}, [&](auto constant) __attribute__((always_inline)) {
        constexpr auto kind = decltype(constant)::value;
        if (!(terms.weight(kind) > 0)) return;
        RowFormulas<T, Kinds<kind>> formulas(terms);
        for (std::int64_t j = 0; j < n; j += lanes<T>) {
          const auto inside = first_lanes<T>(n - j);
          const Vector<T> slope = formulas.slope(inside, load<T>(rows.row + j), load<T>(squares + j));
          store<T>(gradient + j, load<T>(gradient + j) + (inside ? slope : Vector<T>{}));
        }
        if (rows.channel == 0) formulas.sums.put(sums);
      });
}

}  // namespace mpol::ops::MPOL_ISA
