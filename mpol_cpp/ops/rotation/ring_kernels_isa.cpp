// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/rotation/ring_kernels.h>
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {

template <>
struct VectorTypes<std::int16_t> {
  typedef std::int16_t Real __attribute__((vector_size(vector_bytes)));
  typedef std::int16_t Unaligned __attribute__((vector_size(vector_bytes), aligned(alignof(std::int16_t)), may_alias));
  typedef std::int16_t Integer __attribute__((vector_size(vector_bytes)));
};

namespace {

/// Vectors of shifts that stay in registers while the points go by.
template <typename T>
constexpr int most_vectors = 8;
template <>
constexpr int most_vectors<std::int16_t> = 12;

template <typename T>
MPOL_INLINE Vector<T> larger(Vector<T> a, Vector<T> b) {
  return a > b ? a : b;
}

/// a + weight * values; of 16 bits: the upper half of the product.
template <typename T>
MPOL_INLINE Vector<T> add_product(Vector<T> a, Vector<T> weight, Vector<T> values) {
  if constexpr (sizeof(T) == 2) {
#if defined(__AVX512F__)
    return a +
           reinterpret_cast<Vector<T>>(_mm512_mulhi_epi16(reinterpret_cast<__m512i>(weight), reinterpret_cast<__m512i>(values)));
#elif defined(__AVX2__)
    return a +
           reinterpret_cast<Vector<T>>(_mm256_mulhi_epi16(reinterpret_cast<__m256i>(weight), reinterpret_cast<__m256i>(values)));
#elif defined(__x86_64__)
    return a + reinterpret_cast<Vector<T>>(_mm_mulhi_epi16(reinterpret_cast<__m128i>(weight), reinterpret_cast<__m128i>(values)));
#else
    Vector<T> upper{};
    for (int lane = 0; lane < lanes<T>; ++lane)
      upper[lane] = static_cast<T>((std::int32_t{weight[lane]} * std::int32_t{values[lane]}) >> 16);
    return a + upper;
#endif
  } else {
    return a + weight * values;
  }
}

template <typename T>
MPOL_INLINE Vector<T> lowest_values() {
  if constexpr (sizeof(T) == 2) return broadcast<T>(std::numeric_limits<T>::min());
  else return broadcast<T>(-std::numeric_limits<T>::infinity());
}

/// Some vectors of shifts from `first` on. @return the largest of each lane and `best`
template <int vectors, bool stored, typename T>
MPOL_INLINE Vector<T> some_shifts(const T* rings, const RingPoints<T>& points, std::int64_t first, T* out, Vector<T> best) {
  Vector<T> sum[vectors] = {};
  for (std::int64_t k = 0; k < points.count; ++k) {
    const auto weight = broadcast<T>(points.weights[k]);
    const T* from = rings + points.starts[k] + first;
#pragma GCC unroll 12
    for (int v = 0; v < vectors; ++v) sum[v] = add_product<T>(sum[v], weight, load<T>(from + v * lanes<T>));
  }
#pragma GCC unroll 12
  for (int v = 0; v < vectors; ++v) {
    best = larger<T>(sum[v], best);
    if constexpr (stored) store<T>(out + first + v * lanes<T>, sum[v]);
  }
  return best;
}

/// The last vectors, fewer than fill the registers.
template <int vectors, bool stored, typename T>
MPOL_INLINE Vector<T> last_shifts(const T* rings, const RingPoints<T>& points, std::int64_t left, std::int64_t first, T* out,
                                  Vector<T> best) {
  if constexpr (vectors == 0) {
    return best;
  } else {
    if (left == vectors) return some_shifts<vectors, stored, T>(rings, points, first, out, best);
    return last_shifts<vectors - 1, stored, T>(rings, points, left, first, out, best);
  }
}

template <bool stored, typename T>
MPOL_INLINE T all_shifts(const T* rings, const RingPoints<T>& points, std::int64_t nphi, T* out) {
  auto left = (nphi + lanes<T> - 1) / lanes<T>;
  auto best = lowest_values<T>();
  std::int64_t first = 0;
  for (; left >= most_vectors<T>; left -= most_vectors<T>, first += most_vectors<T> * lanes<T>)
    best = some_shifts<most_vectors<T>, stored, T>(rings, points, first, out, best);
  best = last_shifts<most_vectors<T> - 1, stored, T>(rings, points, left, first, out, best);
  T highest = best[0];
  for (int lane = 1; lane < lanes<T>; ++lane) highest = best[lane] > highest ? best[lane] : highest;
  return highest;
}

template <typename T>
T correlate(const T* rings, const RingPoints<T>& points, std::int64_t nphi, T* out) {
  return all_shifts<true, T>(rings, points, nphi, out);
}

template <typename T>
T highest(const T* rings, const RingPoints<T>& points, std::int64_t nphi) {
  return all_shifts<false, T>(rings, points, nphi, nullptr);
}

template <typename T>
double narrow(const T* rings, std::int64_t count, std::int16_t* out) {
  T largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const T size = rings[i] < 0 ? -rings[i] : rings[i];
    largest = size > largest ? size : largest;
  }
  const double step = static_cast<double>(largest) / most_screened_value;
  if (largest > 0 && !(1 / step < std::numeric_limits<T>::max())) return std::numeric_limits<double>::infinity();
  const T factor = largest > 0 ? static_cast<T>(1 / step) : T(0);
  for (std::int64_t i = 0; i < count; ++i) {
    const T scaled = rings[i] * factor;
    out[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(scaled + (scaled < 0 ? T(-0.5) : T(0.5))));
  }
  return step;
}

std::int64_t screened(const std::int16_t* rings, const RingPoints<std::int16_t>& points, std::int64_t nphi) {
  return all_shifts<false, std::int16_t>(rings, points, nphi, nullptr);
}

}  // namespace

template <typename T>
RingKernels<T> ring_kernels() {
  return {correlate<T>, highest<T>, narrow<T>, screened};
}

template RingKernels<float> ring_kernels();
template RingKernels<double> ring_kernels();

}  // namespace mpol::ops::MPOL_ISA
