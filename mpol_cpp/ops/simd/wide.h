#pragma once

// Vectors in float64, and sums of them; for files that are compiled once per instruction set.
#include <cstring>

#include <mpol_cpp/ops/simd/lane_sum.h>
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {

/// A vector in float64.
template <typename T>
struct Wide {
  static constexpr int parts = sizeof(T) == 8 ? 1 : 2;
  Vector<double> part[parts];
};

template <typename T>
MPOL_INLINE Wide<T> widened(Vector<T> values) {
  if constexpr (sizeof(T) == 8) {
    return {{values}};
  } else {
    // A conversion of half a vector by the compiler's own means goes by way of quarters.
#if defined(__AVX512F__)
    const auto bits = _mm512_castps_pd(values);
    const auto lower = _mm512_maskz_extractf64x4_pd(0xf, bits, 0), upper = _mm512_maskz_extractf64x4_pd(0xf, bits, 1);
    return {{_mm512_maskz_cvtps_pd(0xff, _mm256_castpd_ps(lower)), _mm512_maskz_cvtps_pd(0xff, _mm256_castpd_ps(upper))}};
#elif defined(__AVX2__)
    return {{_mm256_cvtps_pd(_mm256_castps256_ps128(values)), _mm256_cvtps_pd(_mm256_extractf128_ps(values, 1))}};
#else
    typedef float Half __attribute__((vector_size(vector_bytes / 2)));
    Half halves[2];
    std::memcpy(halves, &values, sizeof values);
    return {{__builtin_convertvector(halves[0], Vector<double>), __builtin_convertvector(halves[1], Vector<double>)}};
#endif
  }
}

/// The sum of all lanes: halves onto each other, so that few additions wait for one another.
template <typename T>
MPOL_INLINE double sum_of(const Wide<T>& values) {
  auto sum = values.part[0];
  for (int part = 1; part < Wide<T>::parts; ++part) sum += values.part[part];
  double lane[lanes<double>];
  store<double>(lane, sum);
  for (int width = lanes<double> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return lane[0];
}

/// Adds a vector to a sum in float64.
template <typename T>
MPOL_INLINE void add_to(LaneSum& sum, const Wide<T>& values) {
  for (std::int64_t i = 0; i < Wide<T>::parts; ++i) {
    double* lane = sum.lane + i * lanes<double>;
    store<double>(lane, load<double>(lane) + values.part[i]);
  }
}
template <typename T>
MPOL_INLINE void add_to(LaneSum& sum, Vector<T> values) {
  add_to<T>(sum, widened<T>(values));
}

}  // namespace mpol::ops::MPOL_ISA
