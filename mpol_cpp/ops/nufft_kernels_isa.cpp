// Compiled once per instruction set: everything here is in an unnamed namespace but the one function that names it.
#include <cstring>
#include <utility>

#include <mpol_cpp/ops/fused_vector.h>
#include <mpol_cpp/ops/nufft_kernels.h>

#define MPOL_INLINE_LAMBDA __attribute__((always_inline))

namespace mpol::ops::MPOL_ISA {
namespace {

template <int i>
struct Index {
  static constexpr int value = i;
};
template <int begin, int end, typename Body>
MPOL_INLINE void unroll(const Body& body) {
  if constexpr (begin < end) {
    body(Index<begin>{});
    unroll<begin + 1, end>(body);
  }
}

template <typename T>
using LaneSequence = std::make_integer_sequence<int, lanes<T>>;

/// Of the blocks of `block` lanes of a and b, the even ones plus the odd ones.
template <typename T, int block, int... lane>
MPOL_INLINE Vector<T> fold(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (2 * (lane / block) * block + lane % block)...) +
         __builtin_shufflevector(a, b, ((2 * (lane / block) + 1) * block + lane % block)...);
}

/// Sums `count` vectors over their blocks of `last` lanes; they fill count * last / lanes vectors in their order.
template <typename T, int count, int block, int last>
MPOL_INLINE void fold_all(Vector<T>* vectors) {
  if constexpr (block >= last) {
    for (int i = 0; i < count / 2; ++i) vectors[i] = fold<T, block>(vectors[2 * i], vectors[2 * i + 1], LaneSequence<T>{});
    fold_all<T, count / 2, block / 2, last>(vectors);
  }
}

template <typename T, int... lane>
MPOL_INLINE Vector<T> even_lanes(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (2 * lane)...);
}
template <typename T, int... lane>
MPOL_INLINE Vector<T> odd_lanes(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (2 * lane + 1)...);
}
/// a0 b0 a1 b1 ... of the lower (0) or upper (1) half of the lanes.
template <typename T, int half, int... lane>
MPOL_INLINE Vector<T> interleave(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (lane / 2 + half * lanes<T> / 2 + lane % 2 * lanes<T>)...);
}

/// One complex number in all lanes.
template <typename T>
MPOL_INLINE Vector<T> broadcast_pair(const T* pair) {
  if constexpr (sizeof(T) == 4) {
    double both;
    std::memcpy(&both, pair, sizeof both);
    return reinterpret_cast<Vector<T>>(broadcast<double>(both));
  } else {
#if defined(__AVX512F__)
    return _mm512_maskz_broadcast_f64x2(every_lane<T>, _mm_loadu_pd(pair));
#elif defined(__AVX2__)
    return _mm256_broadcast_pd(reinterpret_cast<const __m128d*>(pair));
#else
    return load<T>(pair);
#endif
  }
}

/// A sum in float64, whatever the dtype of what is added.
struct WideSum {
  Vector<double> sum{};

  MPOL_INLINE void add(Vector<double> values) { sum += values; }
  MPOL_INLINE void add(Vector<float> values) {
    typedef float Half __attribute__((vector_size(vector_bytes / 2)));
    Half halves[2];
    std::memcpy(halves, &values, sizeof values);
    sum += __builtin_convertvector(halves[0], Vector<double>);
    sum += __builtin_convertvector(halves[1], Vector<double>);
  }
  MPOL_INLINE double total() const {
    double result = 0;
    for (int i = 0; i < lanes<double>; ++i) result += sum[i];
    return result;
  }
};

template <typename T>
MPOL_INLINE Vector<T> load_points(const T* from, std::int64_t count) {
  return count >= lanes<T> ? load<T>(from) : load_part<T>(from, count);
}
template <typename T>
MPOL_INLINE void store_points(T* to, Vector<T> values, std::int64_t count) {
  if (count >= lanes<T>) store<T>(to, values);
  else store_part<T>(to, values, count);
}

enum class Task { degrid, grid, fused };

/// Where the values at the points come from or go to.
template <typename T>
struct Values {
  const T *real, *imag, *weight;
  T *out_real, *out_imag;
  WideSum chi_squared;

  /// Values of the model become what is to be gridded, in place.
  template <Task task>
  MPOL_INLINE void exchange(std::int64_t i, std::int64_t count, Vector<T>& re, Vector<T>& im) {
    if constexpr (task == Task::degrid) {
      store_points<T>(out_real + i, re, count);
      store_points<T>(out_imag + i, im, count);
    } else if constexpr (task == Task::grid) {
      re = load_points<T>(real + i, count);
      im = load_points<T>(imag + i, count);
    } else {
      const Vector<T> w = load_points<T>(weight + i, count);
      const Vector<T> a = re - load<T>(real + i), b = im - load<T>(imag + i);
      re = w * a;
      im = w * b;
      chi_squared.add(re * a + im * b);
    }
  }
};

template <typename T, int width>
struct Footprint {
  static constexpr int L = lanes<T>;
  static constexpr int row_vectors = (2 * width + L - 1) / L;  // of complex cells along v
  static constexpr int half = (width + 1) / 2;
  static constexpr int degree = nufft_power_degree<T>(width);
  static constexpr int distance = NufftTile::of(width, sizeof(T)).distance;
  static constexpr int dense_degree = nufft_dense_degree(width);
  static constexpr int terms = (dense_degree + 1) * (dense_degree + 2) / 2;
  /// First of the terms T_p(x) T_q(y) of given p.
  static constexpr int first_term(int p) { return p * (dense_degree + 1) - p * (p - 1) / 2; }
};

// Points of which few share a cell: the window is evaluated for each.

/// values[r][p] = window(x[p], r), by the symmetry window(x, r) = window(-x, width - 1 - r).
template <typename T, int width>
MPOL_INLINE void window_along_u(const NufftTables<T>& tables, Vector<T> x, T (*values)[lanes<T>]) {
  using F = Footprint<T, width>;
  constexpr int top_even = F::degree / 2 * 2, top_odd = (F::degree - 1) / 2 * 2 + 1;
  const Vector<T> square = x * x;
  unroll<0, F::half>([&](auto cell) MPOL_INLINE_LAMBDA {
    constexpr int r = decltype(cell)::value;
    Vector<T> even = broadcast<T>(tables.power[top_even][r]);
    for (int k = top_even - 2; k >= 0; k -= 2) even = even * square + tables.power[k][r];
    if constexpr (2 * r + 1 == width) {
      store<T>(values[r], even);
    } else {
      Vector<T> odd = broadcast<T>(tables.power[top_odd][r]);
      for (int k = top_odd - 2; k >= 1; k -= 2) odd = odd * square + tables.power[k][r];
      store<T>(values[r], even + odd * x);
      store<T>(values[width - 1 - r], even - odd * x);
    }
  });
}

/// window(y, s) of one point for all s, each twice.
template <typename T, int width>
MPOL_INLINE void window_along_v(const NufftTables<T>& tables, T y, Vector<T>* row) {
  using F = Footprint<T, width>;
  const Vector<T> offset = broadcast<T>(y);
  if constexpr (F::row_vectors == 1) {
    Vector<T> sum = load<T>(tables.power_twice[F::degree]);
    for (int k = F::degree - 1; k >= 0; --k) sum = sum * offset + load<T>(tables.power_twice[k]);
    row[0] = sum;
  } else {
    constexpr int plain = (width + F::L - 1) / F::L;
    Vector<T> sum[plain];
    for (int i = 0; i < plain; ++i) sum[i] = load<T>(tables.power[F::degree] + i * F::L);
    for (int k = F::degree - 1; k >= 0; --k) {
      for (int i = 0; i < plain; ++i) sum[i] = sum[i] * offset + load<T>(tables.power[k] + i * F::L);
    }
    unroll<0, F::row_vectors>([&](auto vector) MPOL_INLINE_LAMBDA {
      constexpr int i = decltype(vector)::value;
      row[i] = interleave<T, i % 2>(sum[i / 2], sum[i / 2], LaneSequence<T>{});
    });
  }
}

template <typename T, int width>
MPOL_INLINE void degrid_points(const NufftTables<T>& tables, const NufftTilePoints<T>& points, std::int64_t first,
                               std::int64_t count, const T (*along_u)[lanes<T>], const T* tile, Vector<T>& re, Vector<T>& im) {
  using F = Footprint<T, width>;
  Vector<T> sums[F::L];
  for (int p = 0; p < F::L; ++p) {
    const std::int64_t i = p < count ? first + p : first;
    const T* cells = tile + points.cell[i];
    Vector<T> row[F::row_vectors], sum[F::row_vectors] = {};
    window_along_v<T, width>(tables, points.y[i], row);
    unroll<0, width>([&](auto column) MPOL_INLINE_LAMBDA {
      constexpr int r = decltype(column)::value;
      const Vector<T> factor = broadcast<T>(along_u[r][p]);
      for (int v = 0; v < F::row_vectors; ++v) sum[v] += factor * load<T>(cells + r * F::distance + v * F::L);
    });
    Vector<T> total = sum[0] * row[0];
    for (int v = 1; v < F::row_vectors; ++v) total += sum[v] * row[v];
    sums[p] = total;
  }
  fold_all<T, F::L, F::L / 2, 2>(sums);
  re = even_lanes<T>(sums[0], sums[1], LaneSequence<T>{});
  im = odd_lanes<T>(sums[0], sums[1], LaneSequence<T>{});
}

template <typename T, int width>
MPOL_INLINE void grid_points(const NufftTables<T>& tables, const NufftTilePoints<T>& points, std::int64_t first,
                             std::int64_t count, const T (*along_u)[lanes<T>], Vector<T> re, Vector<T> im, T* tile) {
  using F = Footprint<T, width>;
  alignas(64) T values[2 * F::L];
  store<T>(values, interleave<T, 0>(re, im, LaneSequence<T>{}));
  store<T>(values + F::L, interleave<T, 1>(re, im, LaneSequence<T>{}));
  for (int p = 0; p < count; ++p) {
    T* cells = tile + points.cell[first + p];
    Vector<T> row[F::row_vectors];
    window_along_v<T, width>(tables, points.y[first + p], row);
    const Vector<T> value = broadcast_pair<T>(values + 2 * p);
    for (int v = 0; v < F::row_vectors; ++v) row[v] *= value;
    unroll<0, width>([&](auto column) MPOL_INLINE_LAMBDA {
      constexpr int r = decltype(column)::value;
      const Vector<T> factor = broadcast<T>(along_u[r][p]);
      T* to = cells + r * F::distance;
      for (int v = 0; v < F::row_vectors; ++v) store<T>(to + v * F::L, load<T>(to + v * F::L) + factor * row[v]);
    });
  }
}

template <typename T, int width, Task task>
MPOL_INLINE void work_points(const NufftTables<T>& tables, const NufftTilePoints<T>& points, Values<T>& values, const T* in,
                             T* out) {
  constexpr int L = lanes<T>;
  alignas(64) T along_u[width][L];
  for (std::int64_t i = points.begin; i < points.end; i += L) {
    const std::int64_t count = points.end - i < L ? points.end - i : L;
    Vector<T> re, im;
    window_along_u<T, width>(tables, load<T>(points.x + i), along_u);
    if constexpr (task != Task::grid) degrid_points<T, width>(tables, points, i, count, along_u, in, re, im);
    values.template exchange<task>(i, count, re, im);
    if constexpr (task != Task::degrid) grid_points<T, width>(tables, points, i, count, along_u, re, im, out);
  }
}

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
    const T* factor = factors + 2 * F::first_term(p);
    Vector<T> a = broadcast<T>(factor[0]), b = broadcast<T>(factor[1]);
    unroll<1, D + 1 - p>([&](auto inner) MPOL_INLINE_LAMBDA {
      constexpr int q = decltype(inner)::value;
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
      unroll<(p1 == p0 + 1 ? q0 : 0), (p1 == p0 + 1 ? q1 : D + 1 - p)>([&](auto inner) MPOL_INLINE_LAMBDA {
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
MPOL_INLINE void work_run(const NufftTables<T>& tables, const NufftTilePoints<T>& points, const NufftRun& run, Values<T>& values,
                          const T* in, T* out) {
  using F = Footprint<T, width>;
  constexpr int D = F::dense_degree, L = F::L;
  alignas(64) T factors[2 * F::terms + 4 * L];
  Vector<T> moments[(2 * F::terms + L - 1) / L * L] = {};
  RunChunk<T, D> chunk;
  if constexpr (task != Task::grid) run_polynomial<T, width>(tables, in + run.cell, factors);
  for (int begin = 0; begin < run.count; begin += chunk_points) {
    const int size = run.count - begin < chunk_points ? run.count - begin : chunk_points;
    const int groups = (size + L - 1) / L;
    for (int g = 0; g < groups; ++g) {
      const std::int64_t i = run.begin + begin + g * L;
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
  if constexpr (task != Task::degrid) spread_moments<T, width>(tables, moments, out + run.cell);
}

template <typename T, int width, Task task>
MPOL_INLINE double work_tile(const NufftTables<T>& tables, const NufftTilePoints<T>& points, Values<T>& values, const T* in,
                             T* out) {
  work_points<T, width, task>(tables, points, values, in, out);
  for (std::int64_t r = 0; r < points.run_count; ++r) {
    work_run<T, width, task>(tables, points, points.runs[r], values, in, out);
  }
  return values.chi_squared.total();
}

template <typename T, int width>
void degrid(const NufftTables<T>& tables, const NufftTilePoints<T>& points, const T* tile, T* real, T* imag) {
  Values<T> values{nullptr, nullptr, nullptr, real, imag, {}};
  work_tile<T, width, Task::degrid>(tables, points, values, tile, nullptr);
}

template <typename T, int width>
void grid(const NufftTables<T>& tables, const NufftTilePoints<T>& points, const T* real, const T* imag, T* tile) {
  Values<T> values{real, imag, nullptr, nullptr, nullptr, {}};
  work_tile<T, width, Task::grid>(tables, points, values, nullptr, tile);
}

template <typename T, int width>
double fused(const NufftTables<T>& tables, const NufftTilePoints<T>& points, const T* real, const T* imag, const T* weight,
             const T* tile, T* residual) {
  Values<T> values{real, imag, weight, nullptr, nullptr, {}};
  return work_tile<T, width, Task::fused>(tables, points, values, tile, residual);
}

template <typename T, int width>
NufftKernels<T> of_width() {
  return {degrid<T, width>, grid<T, width>, fused<T, width>};
}

}  // namespace

template <typename T>
NufftKernels<T> nufft_kernels(int width) {
  if constexpr (sizeof(T) == 4) {
    if (width == 4) return of_width<T, 4>();
    if (width == 5) return of_width<T, 5>();
    if (width == 6) return of_width<T, 6>();
    if (width == 7) return of_width<T, 7>();
  } else {
    if (width == 6) return of_width<T, 6>();
    if (width == 9) return of_width<T, 9>();
    if (width == 12) return of_width<T, 12>();
    if (width == 14) return of_width<T, 14>();
    if (width == 15) return of_width<T, 15>();
  }
  return {};
}

template NufftKernels<float> nufft_kernels(int);
template NufftKernels<double> nufft_kernels(int);

}  // namespace mpol::ops::MPOL_ISA
