#pragma once

// Elementary functions in kernels; C++17.
#include <cmath>

#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops::gpu_math {

template <typename T>
MPOL_DEVICE T magnitude(T x) {
  return x < T(0) ? -x : x;
}

/// a / b, in float32 on a GPU within 2 units of the last place, and 0 for b beyond 2^126: no long way for numbers that do not
/// occur.
template <typename T>
MPOL_DEVICE T quotient(T a, T b) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) return __fdividef(a, b);
#endif
  return a / b;
}

/// at::softplus with beta 1 and threshold 20.
template <typename T>
MPOL_DEVICE T softplus(T x) {
  using std::exp;
  using std::log1p;
  return x > T(20) ? x : (x > T(0) ? x : T(0)) + log1p(exp(-magnitude(x)));
}

/// Its derivative, 1 / (1 + e^-x), 1 beyond the threshold.
template <typename T>
MPOL_DEVICE T softplus_derivative(T x) {
  using std::exp;
  if (x > T(20)) return T(1);
  const T exponential = exp(-magnitude(x));
  return quotient(x < T(0) ? exponential : T(1), T(1) + exponential);
}

/// In float32 on a GPU within a unit of the last place.
template <typename T>
MPOL_DEVICE T square_root(T x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) {
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
  }
#endif
  using std::sqrt;
  return sqrt(x);
}

template <typename T>
MPOL_DEVICE T logarithm(T x) {
  using std::log;
  return log(x);
}

template <typename T>
MPOL_DEVICE T reciprocal_square_root(T x) {
#ifdef __CUDA_ARCH__
  return rsqrt(x);
#else
  return T(1) / square_root(x);
#endif
}

/// What formulas of regularizers are worked out with, on numbers (regularizers/base/formula.h).
template <typename T>
struct ScalarMath {
  using Value = T;
  MPOL_DEVICE static Value constant(T value) { return value; }
  MPOL_DEVICE static Value magnitude(T x) { return gpu_math::magnitude(x); }
  MPOL_DEVICE static Value logarithm(T x) { return gpu_math::logarithm(x); }
  MPOL_DEVICE static Value reciprocal_square_root(T x) { return gpu_math::reciprocal_square_root(x); }
};

/// 3 x 3 Hann smoothing around element `center` of a tile with rows `distance` apart.
template <typename T, typename Tile>
MPOL_DEVICE T hann(Tile& tile, int center, int distance) {
  const auto row = [&](int at) { return T(0.5) * tile[at] + T(0.25) * (tile[at - 1] + tile[at + 1]); };
  return T(0.5) * row(center) + T(0.25) * (row(center - distance) + row(center + distance));
}

}  // namespace mpol::ops::gpu_math
