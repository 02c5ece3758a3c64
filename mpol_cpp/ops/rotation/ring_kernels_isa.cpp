// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/rotation/ring_kernels.h>
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {
namespace {

constexpr int most_vectors = 8;  // of shifts that stay in registers while the points go by

template <typename T>
MPOL_INLINE Vector<T> larger(Vector<T> a, Vector<T> b) {
  return a > b ? a : b;
}

/// Some vectors of shifts from `first` on. @return the largest of each lane and `best`
template <int vectors, bool stored, typename T>
MPOL_INLINE Vector<T> some_shifts(const T* rings, const RingPoints<T>& points, std::int64_t first, T* out, Vector<T> best) {
  Vector<T> sum[vectors] = {};
  for (std::int64_t k = 0; k < points.count; ++k) {
    const auto weight = broadcast<T>(points.weights[k]);
    const T* from = rings + points.starts[k] + first;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sum[v] += weight * load<T>(from + v * lanes<T>);
  }
#pragma GCC unroll 8
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
  auto best = broadcast<T>(-std::numeric_limits<T>::infinity());
  std::int64_t first = 0;
  for (; left >= most_vectors; left -= most_vectors, first += most_vectors * lanes<T>)
    best = some_shifts<most_vectors, stored, T>(rings, points, first, out, best);
  best = last_shifts<most_vectors - 1, stored, T>(rings, points, left, first, out, best);
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

}  // namespace

template <typename T>
RingKernels<T> ring_kernels() {
  return {correlate<T>, highest<T>};
}

template RingKernels<float> ring_kernels();
template RingKernels<double> ring_kernels();

}  // namespace mpol::ops::MPOL_ISA
