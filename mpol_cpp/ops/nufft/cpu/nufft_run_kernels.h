#pragma once

// Part of nufft_kernels_isa.cpp, which is compiled once per instruction set: everything here is in an unnamed namespace.
#include <mpol_cpp/ops/nufft/cpu/nufft_point_kernels.h>

namespace mpol::ops::MPOL_ISA {
namespace {

// Runs: what a footprint holds becomes sum_{p + q <= D} a[p,q] T_p(2x) T_q(2y), once for all points of the run, with
// an error that the tolerance allows; gridding sums the moments of the values instead and spreads those.

template <typename T, int degree>
MPOL_INLINE void chebyshev(Vector<T> x, Vector<T>* t) {
  const Vector<T> twice = x + x, four = twice + twice;
  t[0] = broadcast<T>(T(1));
  t[1] = twice;
  unroll<2, degree + 1>([&](auto index) MPOL_INLINE_LAMBDA {
    constexpr int k = decltype(index)::value;
    t[k] = four * t[k - 1] - t[k - 2];
  });
}

template <typename T, int width>
MPOL_INLINE void run_polynomial(const NufftTables<T>& tables, const T* cells, T* factors) {
  using F = Footprint<T, width>;
  constexpr int D = F::dense_degree, L = F::L;
  alignas(64) T along_u[D + 1][F::row_vectors * L];
  for (int p = 0; p <= D; ++p) {
    Vector<T> sum[F::row_vectors] = {};
    unroll<0, width>([&](auto column) MPOL_INLINE_LAMBDA {
      constexpr int r = decltype(column)::value;
      const Vector<T> factor = broadcast<T>(tables.chebyshev[p][r]);
      for (int v = 0; v < F::row_vectors; ++v) sum[v] += factor * load<T>(cells + r * F::distance + v * L);
    });
    for (int v = 0; v < F::row_vectors; ++v) store<T>(along_u[p] + v * L, sum[v]);
  }
  unroll<0, D + 1>([&](auto index) MPOL_INLINE_LAMBDA {
    constexpr int p = decltype(index)::value, vectors = (2 * (D + 1 - p) + L - 1) / L;
    Vector<T> sum[vectors] = {};
    for (int s = 0; s < width; ++s) {
      const Vector<T> factor = broadcast_pair<T>(along_u[p] + 2 * s);
      for (int v = 0; v < vectors; ++v) sum[v] += factor * load<T>(tables.by_cell_twice[s] + v * L);
    }
    for (int v = 0; v < vectors; ++v) store<T>(factors + 2 * F::first_term(p) + v * L, sum[v]);
  });
}

template <typename T, int width>
MPOL_INLINE void evaluate_polynomial(const T* factors, const Vector<T>* tx, const Vector<T>* ty, Vector<T>& re, Vector<T>& im) {
  using F = Footprint<T, width>;
  constexpr int D = F::dense_degree;
  re = Vector<T>{};
  im = Vector<T>{};
  unroll<0, D + 1>([&](auto index) MPOL_INLINE_LAMBDA {
    constexpr int p = decltype(index)::value;
    const T* factor = factors + std::int64_t{2} * F::first_term(p);
    Vector<T> a = broadcast<T>(factor[0]), b = broadcast<T>(factor[1]);
    unroll<1, D + 1 - p>([&](auto inner) MPOL_INLINE_LAMBDA {
      constexpr std::int64_t q = decltype(inner)::value;
      a += ty[q] * factor[2 * q];
      b += ty[q] * factor[2 * q + 1];
    });
    re += tx[p] * a;
    im += tx[p] * b;
  });
}

inline constexpr int chunk_points = 256;

template <typename T, int degree>
struct RunChunk {
  static constexpr int groups = chunk_points / lanes<T>;
  alignas(64) T tx[groups][degree + 1][lanes<T>];
  alignas(64) T ty[groups][degree + 1][lanes<T>];
  alignas(64) T re[groups][lanes<T>];
  alignas(64) T im[groups][lanes<T>];
};

#if defined(__AVX512F__)
inline constexpr int moment_limit = 12;  // complex sums held in registers
#else
inline constexpr int moment_limit = 5;
#endif

/// moments[p, q] += sum over points of value T_p T_q for the rows p of [p0, p1), or for q of [q0, q1) of one row.
template <typename T, int width, int p0, int p1, int q0, int q1>
MPOL_INLINE void add_moments(const RunChunk<T, nufft_dense_degree(width)>& chunk, int groups, Vector<T>* moments) {
  using F = Footprint<T, width>;
  constexpr int D = F::dense_degree;
  constexpr int first = F::first_term(p0) + q0;
  constexpr int count = (p1 == p0 + 1 ? F::first_term(p0) + q1 : F::first_term(p1)) - first;
  Vector<T> sum[2 * count];
  for (int i = 0; i < 2 * count; ++i) sum[i] = moments[2 * first + i];
  for (int g = 0; g < groups; ++g) {
    const Vector<T> re = load<T>(chunk.re[g]), im = load<T>(chunk.im[g]);
    unroll<p0, p1>([&](auto index) MPOL_INLINE_LAMBDA {
      constexpr int p = decltype(index)::value;
      const Vector<T> t = load<T>(chunk.tx[g][p]), a = t * re, b = t * im;
      unroll<q0, (p1 == p0 + 1 ? q1 : D + 1 - p)>([&](auto inner) MPOL_INLINE_LAMBDA {
        constexpr int q = decltype(inner)::value, j = 2 * (F::first_term(p) + q - first);
        const Vector<T> y = load<T>(chunk.ty[g][q]);
        sum[j] += a * y;
        sum[j + 1] += b * y;
      });
    });
  }
  for (int i = 0; i < 2 * count; ++i) moments[2 * first + i] = sum[i];
}

/// All moments, as many at a time as fit the registers.
template <typename T, int width, int p0, int q0>
MPOL_INLINE void add_all_moments(const RunChunk<T, nufft_dense_degree(width)>& chunk, int groups, Vector<T>* moments) {
  constexpr int D = nufft_dense_degree(width);
  if constexpr (p0 <= D) {
    constexpr int length = D + 1 - p0, left = length - q0;
    if constexpr (left > moment_limit) {
      add_moments<T, width, p0, p0 + 1, q0, q0 + moment_limit>(chunk, groups, moments);
      add_all_moments<T, width, p0, q0 + moment_limit>(chunk, groups, moments);
    } else if constexpr (q0 > 0 || p0 == D || left + length - 1 > moment_limit) {
      add_moments<T, width, p0, p0 + 1, q0, length>(chunk, groups, moments);
      add_all_moments<T, width, p0 + 1, 0>(chunk, groups, moments);
    } else if constexpr (p0 + 2 <= D && 3 * length - 3 <= moment_limit) {
      add_moments<T, width, p0, p0 + 3, 0, 0>(chunk, groups, moments);
      add_all_moments<T, width, p0 + 3, 0>(chunk, groups, moments);
    } else {
      add_moments<T, width, p0, p0 + 2, 0, 0>(chunk, groups, moments);
      add_all_moments<T, width, p0 + 2, 0>(chunk, groups, moments);
    }
  }
}

/// Adds what the moments stand for to the cells of the footprint.
template <typename T, int width>
MPOL_INLINE void spread_moments(const NufftTables<T>& tables, Vector<T>* moments, T* cells) {
  using F = Footprint<T, width>;
  constexpr int D = F::dense_degree, L = F::L;
  alignas(64) T sums[2 * F::terms + L];
  for (int i = 0; i < 2 * F::terms; i += L) {
    fold_all<T, L, L / 2, 1>(moments + i);
    store<T>(sums + i, moments[i]);
  }
  Vector<T> along_v[D + 1][F::row_vectors];
  unroll<0, D + 1>([&](auto index) MPOL_INLINE_LAMBDA {
    constexpr int p = decltype(index)::value;
    for (int v = 0; v < F::row_vectors; ++v) along_v[p][v] = Vector<T>{};
    for (int q = 0; q < D + 1 - p; ++q) {
      const Vector<T> factor = broadcast_pair<T>(sums + 2 * (F::first_term(p) + q));
      for (int v = 0; v < F::row_vectors; ++v) along_v[p][v] += factor * load<T>(tables.chebyshev_twice[q] + v * L);
    }
  });
  for (int r = 0; r < width; ++r) {
    T* to = cells + r * F::distance;
    for (int v = 0; v < F::row_vectors; ++v) {
      Vector<T> sum = load<T>(to + v * L);
      unroll<0, D + 1>([&](auto index) MPOL_INLINE_LAMBDA {
        constexpr int p = decltype(index)::value;
        sum += along_v[p][v] * tables.chebyshev[p][r];
      });
      store<T>(to + v * L, sum);
    }
  }
}

template <typename T, int width, Task task>
MPOL_INLINE void work_run(const NufftTables<T>& tables, const NufftTilePoints<T>& points, const NufftRun& run,
                          Values<T>& values) {
  using F = Footprint<T, width>;
  constexpr int D = F::dense_degree, L = F::L;
  alignas(64) T factors[2 * F::terms + 4 * L];
  Vector<T> moments[(2 * F::terms + L - 1) / L * L] = {};
  RunChunk<T, D> chunk;
  if constexpr (task != Task::grid) run_polynomial<T, width>(tables, values.image.cells + run.cell, factors);
  for (int begin = 0; begin < run.count; begin += chunk_points) {
    const int size = run.count - begin < chunk_points ? run.count - begin : chunk_points;
    const int groups = (size + L - 1) / L;
    for (int g = 0; g < groups; ++g) {
      const std::int64_t i = run.begin + begin + std::int64_t{g} * L;
      const int count = size - g * L < L ? size - g * L : L;
      Vector<T> re, im, tx[D + 1], ty[D + 1];
      chebyshev<T, D>(load<T>(points.x + i), tx);
      chebyshev<T, D>(load<T>(points.y + i), ty);
      if constexpr (task != Task::grid) evaluate_polynomial<T, width>(factors, tx, ty, re, im);
      values.template exchange<task>(i, count, re, im);
      if constexpr (task != Task::degrid) {
        store<T>(chunk.re[g], re);
        store<T>(chunk.im[g], im);
        unroll<0, D + 1>([&](auto index) MPOL_INLINE_LAMBDA {
          constexpr int p = decltype(index)::value;
          store<T>(chunk.tx[g][p], tx[p]);
          store<T>(chunk.ty[g][p], ty[p]);
        });
      }
    }
    if constexpr (task != Task::degrid) add_all_moments<T, width, 0, 0>(chunk, groups, moments);
  }
  if constexpr (task != Task::degrid) spread_moments<T, width>(tables, moments, values.image.sums + run.cell);
}

}  // namespace
}  // namespace mpol::ops::MPOL_ISA
