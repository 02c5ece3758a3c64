#pragma once

// Part of nufft_kernels_isa.cpp, which is compiled once per instruction set: everything here is in an unnamed namespace.
#include <algorithm>

#include <mpol_cpp/ops/nufft/nufft_kernels.h>
#include <mpol_cpp/ops/nufft/cpu/nufft_vector.h>

namespace mpol::ops::MPOL_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int sum_limit = 27;  // vectors held in registers
#else
inline constexpr int sum_limit = 12;
#endif

enum class Task { degrid, grid, fused };

/// Where the values of an image at the points come from or go to.
template <typename T>
struct Values {
  NufftImage<T> image;
  std::int64_t first;  ///< the point of their first element
  WideSum chi_squared;

  /// Values of the model become what is to be gridded, in place. @param count  of the points, at least one
  template <Task task>
  MPOL_INLINE void exchange(std::int64_t point, std::int64_t count, Vector<T>& re, Vector<T>& im) {
    if (count < 1) __builtin_unreachable();
    const std::int64_t i = point - first;
    if constexpr (task == Task::degrid) {
      store_first<T>(image.model_real + i, re, count);
      store_first<T>(image.model_imag + i, im, count);
    } else if constexpr (task == Task::grid) {
      re = load_first<T>(image.real + i, count);
      im = load_first<T>(image.imag + i, count);
    } else {
      const Vector<T> w = load_first<T>(image.weight + i, count);
      const Vector<T> a = re - load<T>(image.real + i), b = im - load<T>(image.imag + i);
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

  // Gridding takes whole vectors of a tile's cells, which columns start with.
  static_assert(distance % L == 0);
  static constexpr int whole_vectors = (L - 2 + 2 * width + L - 1) / L;  // that the cells of a footprint along v can touch
  static constexpr int block = std::max(1, sum_limit / whole_vectors);   // columns whose sums fit the registers
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
      row[i] = interleave<T, i % 2>(sum[i / 2], sum[i / 2]);
    });
  }
}

/// The windows along v of up to as many points as a vector has lanes: made where they are wanted.
template <typename T, int width>
struct OwnRows {
  const NufftTables<T>& tables;
  const T* y = nullptr;

  MPOL_INLINE explicit OwnRows(const NufftTables<T>& own_tables) : tables(own_tables) {}
  MPOL_INLINE void set(const T* first, std::int64_t) { y = first; }
  MPOL_INLINE void get(int point, Vector<T>* row) const { window_along_v<T, width>(tables, y[point], row); }
};

/// The same, made once for gridding or for several images.
template <typename T, int width>
struct KeptRows {
  using F = Footprint<T, width>;
  const NufftTables<T>& tables;
  alignas(64) T padded[F::L][(F::row_vectors + 2) * F::L];  // between zeros

  MPOL_INLINE explicit KeptRows(const NufftTables<T>& own_tables) : tables(own_tables) {
    for (auto& row : padded) {
      store<T>(row, Vector<T>{});
      store<T>(row + (F::row_vectors + 1) * F::L, Vector<T>{});
    }
  }
  MPOL_INLINE void set(const T* y, std::int64_t count) {
    for (int p = 0; p < count; ++p) {
      Vector<T> row[F::row_vectors];
      window_along_v<T, width>(tables, y[p], row);
      for (int v = 0; v < F::row_vectors; ++v) store<T>(padded[p] + (v + 1) * F::L, row[v]);
    }
  }
  MPOL_INLINE void get(int point, Vector<T>* row) const {
    for (int v = 0; v < F::row_vectors; ++v) row[v] = load<T>(padded[point] + (v + 1) * F::L);
  }
  /// Gets the row for cells from the last multiple of L reals on, where the footprint starts `shift` reals behind it.
  MPOL_INLINE void get_whole(int point, int shift, Vector<T>* row) const {
    for (int v = 0; v < F::whole_vectors; ++v) row[v] = load<T>(padded[point] + (v + 1) * F::L - shift);
  }
};

/// @param cell  first reals of the footprints of `count` points
template <typename T, int width, typename Rows>
MPOL_INLINE void degrid_points(const std::uint16_t* cell, std::int64_t count, const T (*along_u)[lanes<T>], const Rows& rows,
                               const T* tile, Vector<T>& re, Vector<T>& im) {
  using F = Footprint<T, width>;
  Vector<T> sums[F::L];
  for (int p = 0; p < F::L; ++p) {
    const int own = p < count ? p : 0;
    const T* cells = tile + cell[own];
    Vector<T> row[F::row_vectors], sum[F::row_vectors] = {};
    rows.get(own, row);
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
  re = every_other<T, 0>(sums[0], sums[1]);
  im = every_other<T, 1>(sums[0], sums[1]);
}

/// Adds the columns [first, last) of the footprints of the points [begin, end), which start in the same vector of cells.
template <typename T, int width, int first, int last>
MPOL_INLINE void grid_columns(const std::uint16_t* cell, int begin, int end, const T (*along_u)[lanes<T>],
                              const KeptRows<T, width>& rows, const T* values, T* cells) {
  using F = Footprint<T, width>;
  constexpr int V = F::whole_vectors;
  Vector<T> sum[(last - first) * V];
  unroll<first, last>([&](auto column) MPOL_INLINE_LAMBDA {
    constexpr int r = decltype(column)::value;
    for (int v = 0; v < V; ++v) sum[(r - first) * V + v] = load<T>(cells + r * F::distance + v * F::L);
  });
  for (int p = begin; p < end; ++p) {
    Vector<T> row[V];
    rows.get_whole(p, cell[p] % F::L, row);
    const Vector<T> value = broadcast_pair<T>(values + 2 * p);
    for (int v = 0; v < V; ++v) row[v] *= value;
    unroll<first, last>([&](auto column) MPOL_INLINE_LAMBDA {
      constexpr int r = decltype(column)::value;
      const Vector<T> factor = broadcast<T>(along_u[r][p]);
      for (int v = 0; v < V; ++v) sum[(r - first) * V + v] += factor * row[v];
    });
  }
  unroll<first, last>([&](auto column) MPOL_INLINE_LAMBDA {
    constexpr int r = decltype(column)::value;
    for (int v = 0; v < V; ++v) store<T>(cells + r * F::distance + v * F::L, sum[(r - first) * V + v]);
  });
}

template <typename T, int width, int first = 0>
MPOL_INLINE void grid_all_columns(const std::uint16_t* cell, int begin, int end, const T (*along_u)[lanes<T>],
                                  const KeptRows<T, width>& rows, const T* values, T* cells) {
  constexpr int last = std::min(first + Footprint<T, width>::block, width);
  grid_columns<T, width, first, last>(cell, begin, end, along_u, rows, values, cells);
  if constexpr (last < width) grid_all_columns<T, width, last>(cell, begin, end, along_u, rows, values, cells);
}

/// Keeps in registers the sums of points that start in the same vector of cells.
template <typename T, int width>
MPOL_INLINE void grid_points(const std::uint16_t* cell, std::int64_t count, const T (*along_u)[lanes<T>],
                             const KeptRows<T, width>& rows, Vector<T> re, Vector<T> im, T* tile) {
  using F = Footprint<T, width>;
  alignas(64) T values[2 * F::L];
  store<T>(values, interleave<T, 0>(re, im));
  store<T>(values + F::L, interleave<T, 1>(re, im));
  for (int begin = 0, end = 0; begin < count; begin = end) {
    const int vector = cell[begin] / F::L;
    while (++end < count && cell[end] / F::L == vector) {
    }
    grid_all_columns<T, width>(cell, begin, end, along_u, rows, values, tile + vector * F::L);
  }
}

template <typename T, int width, Task task, typename Rows>
MPOL_INLINE void work_points(const NufftTables<T>& tables, const NufftTilePoints<T>& points, Values<T>* images, int image_count) {
  constexpr int L = lanes<T>;
  alignas(64) T along_u[width][L];
  Rows rows(tables);
  for (std::int64_t i = points.begin; i < points.end; i += L) {
    const std::int64_t count = points.end - i < L ? points.end - i : L;
    window_along_u<T, width>(tables, load<T>(points.x + i), along_u);
    rows.set(points.y + i, count);
    for (int n = 0; n < image_count; ++n) {
      auto& values = images[n];
      Vector<T> re, im;
      if constexpr (task != Task::grid)
        degrid_points<T, width>(points.cell + i, count, along_u, rows, values.image.cells, re, im);
      values.template exchange<task>(i, count, re, im);
      if constexpr (task != Task::degrid) grid_points<T, width>(points.cell + i, count, along_u, rows, re, im, values.image.sums);
    }
  }
}

}  // namespace
}  // namespace mpol::ops::MPOL_ISA
