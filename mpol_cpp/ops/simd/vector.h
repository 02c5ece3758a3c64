#pragma once

// Vectors of one register for files that mpol_add_isa_sources compiles: everything here lies in a namespace of that
// instruction set. Rows are worked off vector by vector; the last, partial one runs through the same code.
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cmath>
#endif

#define MPOL_INLINE [[gnu::always_inline]] inline

namespace mpol::ops::MPOL_ISA {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <typename T>
struct VectorTypes;
template <>
struct VectorTypes<float> {
  typedef float Real __attribute__((vector_size(vector_bytes)));
  typedef float Unaligned __attribute__((vector_size(vector_bytes), aligned(alignof(float)), may_alias));
  typedef std::int32_t Integer __attribute__((vector_size(vector_bytes)));
};
template <>
struct VectorTypes<double> {
  typedef double Real __attribute__((vector_size(vector_bytes)));
  typedef double Unaligned __attribute__((vector_size(vector_bytes), aligned(alignof(double)), may_alias));
  typedef std::int64_t Integer __attribute__((vector_size(vector_bytes)));
};

template <typename T>
using Vector = typename VectorTypes<T>::Real;
template <typename T>
using IntegerVector = typename VectorTypes<T>::Integer;  // also what comparisons give: 0 or -1

template <typename T>
inline constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <typename T>
MPOL_INLINE Vector<T> load(const T* from) {
  return *reinterpret_cast<const typename VectorTypes<T>::Unaligned*>(from);
}
template <typename T>
MPOL_INLINE void store(T* to, Vector<T> values) {
  *reinterpret_cast<typename VectorTypes<T>::Unaligned*>(to) = values;
}

/// -1 in the first `count` lanes, 0 in the others.
template <typename T>
MPOL_INLINE IntegerVector<T> first_lanes(std::int64_t count) {
  IntegerVector<T> lane{}, limit{};
  for (int i = 0; i < lanes<T>; ++i) {
    lane[i] = i;
    limit[i] = static_cast<std::remove_reference_t<decltype(limit[0])>>(count < lanes<T> ? count : lanes<T>);
  }
  return lane < limit;
}

/// The first `count` < lanes values, then zeros; nothing beyond them is touched.
template <typename T>
MPOL_INLINE Vector<T> load_part(const T* from, std::int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from);
  else return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << count) - 1), from);
#else
  alignas(vector_bytes) T values[lanes<T>] = {};
  for (std::int64_t i = 0; i < count; ++i) values[i] = from[i];
  return load<T>(values);
#endif
}
template <typename T>
MPOL_INLINE void store_part(T* to, Vector<T> values, std::int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), values);
  else _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1U << count) - 1), values);
#else
  for (std::int64_t i = 0; i < count; ++i) to[i] = values[static_cast<int>(i)];
#endif
}

/// The first `count` values, which may be none or more than there are lanes, then zeros.
template <typename T>
MPOL_INLINE Vector<T> load_first(const T* from, std::int64_t count) {
  return count >= lanes<T> ? load<T>(from) : count > 0 ? load_part<T>(from, count) : Vector<T>{};
}
template <typename T>
MPOL_INLINE void store_first(T* to, Vector<T> values, std::int64_t count) {
  if (count >= lanes<T>) store<T>(to, values);
  else if (count > 0) store_part<T>(to, values, count);
}

/// Calls at(i, count) for vectors from 0 to n, the last of which may be a part.
template <typename T, typename At>
MPOL_INLINE void each_vector(std::int64_t n, const At& at) {
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) at(i, lanes<T>);
  if (i < n) at(i, n - i);
}

#if defined(__AVX512F__)
// GCC 12 warns of an uninitialised value in the forms without a mask; the code is the same.
template <typename T>
inline constexpr auto every_lane = static_cast<std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>>(-1);
#endif

template <typename T>
MPOL_INLINE Vector<T> broadcast(T value) {
  return value - Vector<T>{};
}

template <typename T>
MPOL_INLINE Vector<T> magnitude(Vector<T> x) {
  using Integer = IntegerVector<T>;
  const Integer all_but_sign = ~(reinterpret_cast<Integer>(broadcast<T>(T(-0.0))));
  return reinterpret_cast<Vector<T>>(reinterpret_cast<Integer>(x) & all_but_sign);
}

/// -|x|
template <typename T>
MPOL_INLINE Vector<T> negative_magnitude(Vector<T> x) {
  using Integer = IntegerVector<T>;
  const auto sign = reinterpret_cast<Integer>(broadcast<T>(T(-0.0)));
  return reinterpret_cast<Vector<T>>(reinterpret_cast<Integer>(x) | sign);
}

/// The larger of x and a bound; x where that is no number. One instruction, which GCC does not make of a comparison.
template <typename T>
MPOL_INLINE Vector<T> at_least(Vector<T> bound, Vector<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_max_ps(every_lane<T>, bound, x);
  else return _mm512_maskz_max_pd(every_lane<T>, bound, x);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_max_ps(bound, x);
  else return _mm256_max_pd(bound, x);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return _mm_max_ps(bound, x);
  else return _mm_max_pd(bound, x);
#else
  return x < bound ? bound : x;
#endif
}

template <typename T>
MPOL_INLINE Vector<T> square_root(Vector<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_sqrt_ps(every_lane<T>, x);
  else return _mm512_maskz_sqrt_pd(every_lane<T>, x);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_sqrt_ps(x);
  else return _mm256_sqrt_pd(x);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return _mm_sqrt_ps(x);
  else return _mm_sqrt_pd(x);
#else
  for (int i = 0; i < lanes<T>; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}

/// 1/x for x of normal magnitude, neither 0 nor infinite. AVX-512: the 14-bit estimate y has the error h = 1 - xy, and
/// 1/x = y (1 + h + h^2 + ...).
template <typename T>
MPOL_INLINE Vector<T> reciprocal(Vector<T> x) {
#if defined(__AVX512F__)
  Vector<T> y;
  if constexpr (sizeof(T) == 4) y = _mm512_maskz_rcp14_ps(every_lane<T>, x);
  else y = _mm512_maskz_rcp14_pd(every_lane<T>, x);
  const Vector<T> h = T(1) - x * y;
  if constexpr (sizeof(T) == 4) return y + y * h;
  else return y + y * (h + h * h * (T(1) + h));
#else
  return T(1) / x;
#endif
}

/// 1/sqrt(x) for x of normal magnitude, neither 0 nor infinite. AVX-512: with the 14-bit estimate y and h = 1 - x y^2,
/// 1/sqrt(x) = y (1 - h)^(-1/2), expanded as far as the dtype needs.
template <typename T>
MPOL_INLINE Vector<T> reciprocal_square_root(Vector<T> x) {
#if defined(__AVX512F__)
  Vector<T> y;
  if constexpr (sizeof(T) == 4) y = _mm512_maskz_rsqrt14_ps(every_lane<T>, x);
  else y = _mm512_maskz_rsqrt14_pd(every_lane<T>, x);
  const Vector<T> h = T(1) - (x * y) * y;
  if constexpr (sizeof(T) == 4) return y + (T(0.5) * y) * h;  // what is left out is below a tenth of the last digit
  else return y + y * h * (T(0.5) + h * (T(0.375) + h * (T(0.3125) + h * T(0.2734375))));
#else
  return T(1) / square_root<T>(x);
#endif
}

/// sqrt(x) for x >= 0, infinity too; what is below the normal range becomes smaller than it is.
template <typename T>
MPOL_INLINE Vector<T> fast_square_root(Vector<T> x) {
#if defined(__AVX512F__)
  constexpr T smallest = std::numeric_limits<T>::min(), largest = std::numeric_limits<T>::max();
  const Vector<T> root = x * reciprocal_square_root<T>(x < smallest ? broadcast<T>(smallest) : x);
  return x > largest ? x : root;  // infinity times 0 is no number
#else
  return square_root<T>(x);
#endif
}

}  // namespace mpol::ops::MPOL_ISA
